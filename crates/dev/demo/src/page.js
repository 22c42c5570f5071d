// Embeds a session, polls it, and shows the webhooks that arrive.
const begin = document.getElementById('begin');
let session = null;
let shown = null;

begin.onclick = async () => {
  const answer = await (await fetch('/sessions', { method: 'POST' })).json();
  if (!answer.data) {
    document.getElementById('status').textContent = answer.message;
    return;
  }
  session = answer.data.sessionId;
  const { mount } = await import(new URL('/embed.js', answer.data.embedUrl));
  shown?.destroy();
  shown = mount('#frame', answer.data.embedUrl);
  shown.on('status', ({ status, progress }) => {
    document.getElementById('told').textContent = `${status} (${progress} %)`;
  });
};

setInterval(async () => {
  const deliveries = await (await fetch('/deliveries')).json();
  if (deliveries.length) {
    document.getElementById('webhooks').textContent = JSON.stringify(deliveries.reverse(), null, 2);
  }
  if (!session) return;
  const { data } = await (await fetch(`/sessions/${session}`)).json();
  document.getElementById('status').textContent = `${data.status} (${data.progress} %)`;
}, 1000);
