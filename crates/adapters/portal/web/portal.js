// Conveniences only: every page works without this.
// Times are written in the language of the page, as is usual in the viewer's region.
const language = document.documentElement.lang;
const locale = navigator.languages.find((tag) => tag.split("-")[0].toLowerCase() === language);
const format = new Intl.DateTimeFormat(locale ?? language, {
  dateStyle: "medium",
  timeStyle: "medium",
});

// Shows what needs scripts, and times in the viewer's time zone; the time in UTC is the title.
const enhance = (root) => {
  for (const button of root.querySelectorAll("[data-copy]")) button.hidden = false;
  for (const time of root.querySelectorAll("time[datetime]")) {
    time.textContent = format.format(new Date(time.dateTime));
  }
};
enhance(document);

document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  const field = document.getElementById(button.dataset.copy);
  field.select?.();
  await navigator.clipboard.writeText(field.value ?? field.textContent);
  button.textContent = button.dataset.copied;
});

// On narrow screens the navigation is one row that scrolls.
document.querySelector("nav a[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

// A page about something in progress is refreshed while it is visible.
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
      // The page's policy names the origin of a recording, and only a whole page brings it.
      if (after?.querySelector("video")) return location.reload();
      if (after) enhance(after);
      if (after && after.innerHTML !== before.innerHTML) before.replaceWith(after);
    } catch {
      // Offline for a while: the next request may succeed.
    }
  }
  setTimeout(look, again, left - 1);
};
setTimeout(look, again, longest);

// Browsers offer passkeys to scripts only: the browser's answer is sent with the form.
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

// After a confirmation, the form that waited is sent.
document.querySelector("form[data-continue]")?.requestSubmit();
