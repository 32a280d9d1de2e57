// Before anything is drawn: the theme that was chosen, so that no page flashes in the other one.
(() => {
  const chosen = document.cookie.match(/(?:^|; )upswing_theme=(light|dark)/);
  if (chosen) document.documentElement.dataset.theme = chosen[1];
  window.upswingTheme = (theme) => {
    const html = document.documentElement;
    if (theme === "auto") delete html.dataset.theme;
    else html.dataset.theme = theme;
    const age = theme === "auto" ? 0 : 31536000;
    document.cookie = `upswing_theme=${theme}; path=/; max-age=${age}; samesite=strict`;
  };
  // A page whose session has ended, or whose server was restarted, cannot connect again: it goes to the login.
  let failures = 0;
  setInterval(() => {
    if (!window.socket || window.socket.connected) {
      failures = 0;
      return;
    }
    failures += 1;
    if (failures < 3) return;
    failures = 0;
    fetch("/session", { headers: { accept: "text/plain" } })
      .then((answer) => {
        if (answer.status === 401 || answer.status === 200) window.location.reload();
      })
      .catch(() => {});
  }, 1500);
})();
