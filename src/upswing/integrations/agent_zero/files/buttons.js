// Thumbs, stars and a comment under the answers of a chat; what was said can be changed.
// Agent Zero calls this after it has drawn messages: context.results[] = { args: { id, type, … }, result: { element, … } }

const ENDPOINT = "/plugins/upswing/feedback";
const KINDS = new Set(["response"]);
const chats = new Map(); // chat id → { messages: { id: given }, refused: ids that cannot be rated }

async function api(body) {
  const { callJsonApi } = await import("/js/api.js");
  return await callJsonApi(ENDPOINT, body);
}

function say(text) {
  const store = globalThis.Alpine?.store?.("notificationStore");
  if (store?.frontendError) store.frontendError(text, "Upswing");
  else console.error(`Upswing: ${text}`);
}

function sentence(error) {
  const text = String(error?.message ?? error);
  try {
    return JSON.parse(text).error ?? text;
  } catch {
    return text;
  }
}

// Which messages can be rated: those that were recorded. Asked again when a new answer is not among them.
async function rateable(chat, ids) {
  const known = chats.get(chat);
  if (known && ids.every((id) => id in known.messages || known.refused.has(id))) return known;
  const fresh = { messages: {}, refused: known?.refused ?? new Set() };
  try {
    fresh.messages = (await api({ context: chat })).messages ?? {};
  } catch (error) {
    console.debug(`Upswing: ${sentence(error)}`);
    return known ?? fresh;
  }
  chats.set(chat, fresh);
  return fresh;
}

function button(icon, title, onClick) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = `action-button upswing-button upswing-${icon}`;
  made.title = title;
  made.setAttribute("aria-label", title);
  const symbol = document.createElement("span");
  symbol.className = "material-symbols-outlined";
  symbol.textContent = icon;
  made.appendChild(symbol);
  made.addEventListener("click", async (event) => {
    event.stopPropagation();
    made.disabled = true;
    try {
      await onClick();
    } catch (error) {
      say(sentence(error));
    } finally {
      made.disabled = false;
    }
  });
  return made;
}

function draw(bar, given) {
  bar.dataset.given = JSON.stringify(given ?? {});
  const press = (name, on) => {
    const each = bar.querySelector(name);
    each.setAttribute("aria-pressed", String(Boolean(on)));
    each.style.opacity = on ? "1" : "0.55";
  };
  press(".upswing-thumb_up", given?.thumbs === "up");
  press(".upswing-thumb_down", given?.thumbs === "down");
  press(".upswing-comment", given?.comment);
  bar.querySelectorAll(".upswing-star").forEach((star, place) => {
    const on = (given?.stars ?? 0) > place;
    star.setAttribute("aria-pressed", String(on));
    star.style.opacity = on ? "1" : "0.55";
  });
}

function build(chat, id) {
  const bar = document.createElement("div");
  bar.className = "upswing-feedback";
  bar.dataset.message = id;
  bar.style.cssText = "display:inline-flex;gap:.15rem;align-items:center;margin-top:.25rem";
  const send = async (said) => {
    const answer = await api({ context: chat, message: id, ...said });
    const known = chats.get(chat);
    if (known) known.messages[id] = answer.given;
    document
      .querySelectorAll(`.upswing-feedback[data-message="${CSS.escape(id)}"]`)
      .forEach((each) => draw(each, answer.given));
  };
  bar.appendChild(button("thumb_up", "Good answer", () => send({ thumbs: "up" })));
  bar.appendChild(button("thumb_down", "Bad answer", () => send({ thumbs: "down" })));
  for (let count = 1; count <= 5; count++) {
    const star = button("star", `${count} of 5 stars`, () => send({ stars: count }));
    star.classList.add("upswing-star");
    bar.appendChild(star);
  }
  const box = document.createElement("span");
  box.hidden = true;
  const input = document.createElement("input");
  input.type = "text";
  input.className = "upswing-comment-text";
  input.placeholder = "What would have been better?";
  input.maxLength = 10000;
  box.appendChild(input);
  const write = async () => {
    if (!input.value.trim()) return;
    await send({ comment: input.value });
    box.hidden = true;
  };
  input.addEventListener("keydown", (event) => {
    event.stopPropagation(); // the chat's own keys
    if (event.key === "Enter") write().catch((error) => say(sentence(error)));
    if (event.key === "Escape") box.hidden = true;
  });
  bar.appendChild(
    button("comment", "Comment", () => {
      box.hidden = !box.hidden;
      input.value = JSON.parse(bar.dataset.given || "{}").comment ?? "";
      if (!box.hidden) input.focus();
    }),
  );
  box.appendChild(button("send", "Send the comment", write));
  bar.appendChild(box);
  return bar;
}

export default async function addFeedbackButtons(context) {
  // An answer that is still being written is drawn again when it is finished.
  const answers = (context?.results ?? []).filter(
    ({ args, result }) =>
      result?.element && typeof args?.id === "string" && KINDS.has(args.type) && args.kvps?.finished,
  );
  const chat = globalThis.getContext?.();
  if (!chat || answers.length === 0) return;
  const known = await rateable(chat, answers.map(({ args }) => args.id));
  for (const { args, result } of answers) {
    if (!(args.id in known.messages)) {
      known.refused.add(args.id); // nobody recorded it: the greeting, say
      continue;
    }
    let bar = result.element.querySelector(`.upswing-feedback[data-message="${CSS.escape(args.id)}"]`);
    if (!bar) {
      bar = build(chat, args.id);
      result.element.appendChild(bar);
    }
    draw(bar, known.messages[args.id]);
  }
}
