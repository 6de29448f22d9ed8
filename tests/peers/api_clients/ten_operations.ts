// Ten operations through the types that openapi-typescript generates from /openapi.json.
// Arguments: the address of the service, a token, and the numbers of its organization and tenant.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

const [baseUrl, token, org, tenant] = process.argv.slice(2);
const scope = { orgId: Number(org), tenantId: Number(tenant) };
const api = createClient<paths>({ baseUrl, headers: { "X-Authorization": token } });

function answered<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

const { domainId } = answered(await api.POST("/ad/AddDomain", { body: { ...scope, domainName: "typed" } }));
const inDomain = { ...scope, domainId };
answered(await api.POST("/ad/UpdateDomain", { body: { ...inDomain, addRealms: ["typed.example"] } }));
const { domains } = answered(await api.POST("/ad/GetAllDomains", { body: { ...scope, pageSize: 100 } }));
assert.deepEqual(domains.find((each) => each.domainId === domainId)?.realms, ["typed.example"]);

const nas = { name: "typed", address: "192.0.2.201", domainIds: [domainId] };
const { clientId, secret } = answered(await api.POST("/network_device/AddClient", { body: { ...scope, ...nas } }));
assert.ok((secret ?? "").length >= 16);
const found = answered(await api.POST("/network_device/ListClients", { body: { ...scope, clientId } }));
assert.deepEqual([found.totalCount, found.clients[0].name], [1, "typed"]);
const devices = answered(await api.POST("/network_device/ListDevices", { body: inDomain }));
assert.equal(devices.totalCount, devices.network_devices.length);

const rule = { ...inDomain, name: "typed", action: "block" as const, users: ["ann"] };
const { ruleId } = answered(await api.POST("/ad/AddLoginRule", { body: rule }));
const rules = answered(await api.POST("/ad/ListLoginRules", { body: { ...inDomain, ruleId } }));
assert.deepEqual(rules.rules[0].users, ["ann"]);
answered(await api.POST("/network_device/DeleteClient", { body: { ...scope, clientId } }));

// An error body has its type too, and the compiler knows the types of a request.
const refused = await api.POST("/network_device/DeleteClient", { body: { ...scope, clientId } });
assert.equal(refused.error?.code, 404);
// @ts-expect-error: pageSize is a number
const wrong = await api.POST("/ad/GetAuthLog", { body: { ...inDomain, pageSize: "ten" } });
assert.equal(wrong.error?.code, 400);
console.log("ten operations done");
