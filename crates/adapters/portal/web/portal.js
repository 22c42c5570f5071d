// Comforts only: every page works without this.
for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const field = document.getElementById(button.dataset.copy);
    field.select();
    await navigator.clipboard.writeText(field.value);
    button.textContent = "Copied";
  });
}

// What goes on is looked at again, for as long as somebody looks at the page.
const again = 2000;
const longest = 1800;
const look = async (left) => {
  const before = document.querySelector("[data-live]");
  if (!before || left === 0) return;
  if (!document.hidden) {
    try {
      const answer = await fetch(location.href, { redirect: "error" });
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const after = page.getElementById("live");
      // Where a film may come from stands in the page's policy, which only a whole page brings.
      if (after?.querySelector("video")) return location.reload();
      if (after && after.innerHTML !== before.innerHTML) before.replaceWith(after);
    } catch {
      // Offline for a while: the next look may succeed.
    }
  }
  setTimeout(look, again, left - 1);
};
setTimeout(look, again, longest);

// Passkeys are for scripts alone: the browser is asked, and its answer goes with the form.
for (const form of document.querySelectorAll("form[data-passkey]")) {
  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const problem = form.querySelector(".problem");
    problem.hidden = true;
    try {
      const options = JSON.parse(form.dataset.options);
      const made =
        form.dataset.passkey === "create"
          ? await navigator.credentials.create({
              publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options),
            })
          : await navigator.credentials.get({
              publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options),
            });
      form.elements.answer.value = JSON.stringify(made);
      form.submit();
    } catch {
      problem.hidden = false;
    }
  });
}

// After a confirmation the form that waited goes on by itself.
document.querySelector("form[data-continue]")?.requestSubmit();
