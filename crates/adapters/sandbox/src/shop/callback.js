// Hands what the provider answered to the window that began the sign-in. Where there is none, the
// shop goes on in this one.
if (window.opener) {
  window.opener.postMessage({ type: 'acme-id', answer: location.search }, location.origin);
  window.close();
} else {
  location.replace(`/sign-in${location.search}`);
}
