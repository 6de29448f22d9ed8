// Asks verifiers of others about what Sallyport issues, and wallets of others for what it takes. Standard input: a JSON
// array of questions, each with `ask` and what that takes; standard output: an array of answers, true or what was made, or
// the reason why not. Nothing here uses the network: what a question needs (DID documents, status lists) comes with it.
import { readFileSync } from 'node:fs'
import { Resolver } from 'did-resolver'
import * as keyResolver from 'key-did-resolver'

const published = (documents = {}) => async (did) => ({
  didDocument: documents[did] ?? null,
  didDocumentMetadata: {},
  didResolutionMetadata: documents[did] ? { contentType: 'application/did+json' } : { error: 'notFound' },
})

const loader = (documents) => async (url) => {
  const document = documents[url] ?? documents[url.split('#')[0]]
  if (!document) throw new Error(`nobody asked for ${url}`)
  return { contextUrl: null, documentUrl: url, document }
}

// A controller document by its own URL, a verification method by its own, as documentLoader has to give them.
const withMethods = (documents) => {
  const found = { ...documents }
  for (const document of Object.values(documents))
    for (const method of document.verificationMethod ?? [])
      found[method.id] = { '@context': 'https://w3id.org/security/multikey/v1', ...method }
  return found
}

const ASKED = {
  // The token verifies, by what the issuer's DID resolves to.
  async didJwtVc({ jwt, documents }) {
    const { verifyCredential } = await import('did-jwt-vc')
    const resolver = new Resolver({ ...keyResolver.getResolver(), jwk: published(documents), web: published(documents) })
    const { verified } = await verifyCredential(jwt, resolver)
    return verified
  },
  // The presentation verifies for its audience and nonce.
  async didJwtVp({ jwt, audience, nonce }) {
    const { verifyPresentation } = await import('did-jwt-vc')
    const resolver = new Resolver(keyResolver.getResolver())
    const { verified, payload } = await verifyPresentation(jwt, resolver, { audience, challenge: nonce })
    return verified && payload.nonce === nonce
  },
  // A presentation as a wallet with did-jwt-vc makes it; seed: 32 octets of an Ed25519 key, in hex.
  async makeVp({ seed, did, method, jwt, audience, nonce }) {
    const { createVerifiablePresentationJwt } = await import('did-jwt-vc')
    const { createPrivateKey, sign } = await import('node:crypto')
    const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), Buffer.from(seed, 'hex')])
    const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
    const signer = async (data) => sign(null, Buffer.from(data), key).toString('base64url')
    const now = Math.floor(Date.now() / 1000)
    const vp = { '@context': ['https://www.w3.org/2018/credentials/v1'], type: ['VerifiablePresentation'] }
    const payload = { nbf: now, exp: now + 300, vp: { ...vp, verifiableCredential: [jwt] } }
    const header = { alg: 'EdDSA', kid: method }
    return createVerifiablePresentationJwt(payload, { did, signer, alg: 'EdDSA' }, { header, domain: audience, challenge: nonce })
  },
  // The signature of a token holds for a JWK, and the algorithm is the one that is expected.
  async jose({ jwt, jwk, algorithm }) {
    const { compactVerify, importJWK } = await import('jose')
    await compactVerify(jwt, await importJWK(jwk, algorithm), { algorithms: [algorithm] })
    return true
  },
  // A did:key has this verification method.
  async keyDidResolver({ did, method }) {
    const { didDocument } = await new Resolver(keyResolver.getResolver()).resolve(did)
    return didDocument.verificationMethod.some(({ id }) => id === method)
  },
  async didMethodKey({ did, method, multikey }) {
    const Ed25519Multikey = await import('@digitalbazaar/ed25519-multikey')
    const { driver } = await import('@digitalbazaar/did-method-key')
    const keys = driver()
    keys.use({ multibaseMultikeyHeader: 'z6Mk', fromMultibase: Ed25519Multikey.from })
    const document = await keys.get({ did })
    const [found] = document.verificationMethod
    return found.id === method && found.publicKeyMultibase === multikey && document.assertionMethod.includes(method)
  },
  // The proof of a document holds (eddsa-jcs-2022).
  async dataIntegrity({ document, documents }) {
    const { default: jsigs } = await import('jsonld-signatures')
    const { DataIntegrityProof } = await import('@digitalbazaar/data-integrity')
    const { createVerifyCryptosuite } = await import('@digitalbazaar/eddsa-jcs-2022-cryptosuite')
    const result = await jsigs.verify(document, {
      suite: new DataIntegrityProof({ cryptosuite: createVerifyCryptosuite() }),
      purpose: new jsigs.purposes.AssertionProofPurpose(),
      documentLoader: loader(withMethods(documents)),
    })
    if (!result.verified) throw result.error.errors?.[0] ?? result.error
    return true
  },
  // A credential meets a presentation definition.
  async pex({ definition, jwt }) {
    const { PEX } = await import('@sphereon/pex')
    const { errors } = new PEX().evaluateCredentials(definition, [jwt])
    if (errors?.length) throw new Error(errors[0].message)
    return true
  },
  // The status list says that a credential stands.
  async statusList({ credential, documents }) {
    const { checkStatus } = await import('@digitalbazaar/vc-status-list')
    const documentLoader = loader(documents)
    const result = await checkStatus({ credential, documentLoader, verifyStatusListCredential: false })
    if (result.error) throw result.error
    return result.verified
  },
  // The response of a browser registers a passkey for its challenge, origin and host. The answer is what was read of it.
  async webauthnRegistration({ response, challenge, origin, host }) {
    const { verifyRegistrationResponse } = await import('@simplewebauthn/server')
    const expected = { expectedChallenge: challenge, expectedOrigin: origin, expectedRPID: host }
    const { verified, registrationInfo } = await verifyRegistrationResponse({ response, ...expected, requireUserVerification: true })
    if (!verified) return false
    const { credential, fmt, credentialBackedUp, credentialDeviceType } = registrationInfo
    const key = Buffer.from(credential.publicKey).toString('hex')
    return { id: credential.id, key, fmt, backedUp: credentialBackedUp, synchronised: credentialDeviceType === 'multiDevice' }
  },
  // The response of a browser is an assertion of a passkey (id in base64url, key in hex) for its challenge.
  async webauthnAssertion({ response, challenge, origin, host, id, key }) {
    const { verifyAuthenticationResponse } = await import('@simplewebauthn/server')
    const expected = { expectedChallenge: challenge, expectedOrigin: origin, expectedRPID: host }
    const credential = { id, publicKey: new Uint8Array(Buffer.from(key, 'hex')), counter: 0 }
    return (await verifyAuthenticationResponse({ response, ...expected, credential, requireUserVerification: true })).verified
  },
}

const answers = []
for (const question of JSON.parse(readFileSync(0, 'utf8'))) {
  try {
    answers.push(await ASKED[question.ask](question))
  } catch (error) {
    answers.push(String(error?.message ?? error).split('\n')[0] || 'refused')
  }
}
process.stdout.write(JSON.stringify(answers))
