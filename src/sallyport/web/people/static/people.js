// Shows times in the time zone of the browser. Answers forms with data-passkey="get" or "create": asks the browser for a
// passkey and submits its response.
//
//   <form method="post" data-passkey="get" data-options="{...}">
//     <input type="hidden" name="credential"><p role="alert" hidden></p><button>Use a passkey</button>
//   </form>
//
// data-options: the JSON of WebAuthn's PublicKeyCredentialRequestOptionsJSON or ...CreationOptionsJSON (level 3, 5.1.9).
"use strict";

const toOctets = (text) => {
  const base64 = text.replaceAll("-", "+").replaceAll("_", "/");
  return Uint8Array.from(atob(base64), (each) => each.charCodeAt(0));
};

const toText = (buffer) => {
  let octets = "";
  for (const each of new Uint8Array(buffer)) octets += String.fromCharCode(each);
  return btoa(octets).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
};

const withIds = (list) => (list || []).map((each) => ({ ...each, id: toOctets(each.id) }));

function optionsOf(json) {
  const options = { ...json, challenge: toOctets(json.challenge) };
  if (json.allowCredentials) options.allowCredentials = withIds(json.allowCredentials);
  if (json.excludeCredentials) options.excludeCredentials = withIds(json.excludeCredentials);
  if (json.user) options.user = { ...json.user, id: toOctets(json.user.id) };
  return options;
}

function responseOf(credential) {
  const given = credential.response;
  const response = { clientDataJSON: toText(given.clientDataJSON) };
  for (const name of ["attestationObject", "authenticatorData", "signature", "userHandle"]) {
    if (given[name]) response[name] = toText(given[name]);
  }
  if (given.getTransports) response.transports = given.getTransports();
  return JSON.stringify({
    id: credential.id,
    rawId: toText(credential.rawId),
    type: credential.type,
    clientExtensionResults: credential.getClientExtensionResults(),
    authenticatorAttachment: credential.authenticatorAttachment || undefined,
    response,
  });
}

const reasons = {
  NotAllowedError: "No passkey was used: it was cancelled, or there is none for this page on this device. Try again.",
  InvalidStateError: "This device already has a passkey for you.",
  SecurityError: "This browser does not allow a passkey on this page.",
};

async function answer(form) {
  const button = form.querySelector("button");
  const message = form.querySelector("[role=alert]");
  message.hidden = true;
  button.disabled = true;
  try {
    if (!navigator.credentials || !window.PublicKeyCredential) throw new Error("This browser has no passkeys.");
    const publicKey = optionsOf(JSON.parse(form.dataset.options));
    const credential = await navigator.credentials[form.dataset.passkey]({ publicKey });
    form.elements.credential.value = responseOf(credential);
    form.submit();
  } catch (error) {
    message.textContent = reasons[error.name] || error.message;
    message.hidden = false;
    button.disabled = false;
  }
}

for (const form of document.querySelectorAll("form[data-passkey]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    answer(form);
  });
}

for (const each of document.querySelectorAll("time[datetime]")) {
  const at = new Date(each.dateTime);
  if (!Number.isNaN(at.getTime())) each.textContent = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}
