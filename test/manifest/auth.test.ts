import { describe, expect, test } from 'vitest'
import { acme, formatted, loadAcme } from './files.ts'

const withAuth = (auth: string) => acme.replace('auth: { scheme: none }', `auth: { ${auth} }`)
const provider = (auth: string, env: { [name: string]: string } = {}) => {
  const { loaded, problems } = loadAcme(withAuth(auth), env)
  if (!loaded) throw new Error(formatted(problems).join('\n'))
  return loaded.provider
}
const problems = (auth: string, env: { [name: string]: string } = {}) =>
  formatted(loadAcme(withAuth(auth), env).problems)

const aws =
  'scheme: aws-sigv4, service: acme, region: "${REGION:-us-east-1}", access_key: "${ID}", secret_key: "${KEY}", ' +
  'session_token: "${SESSION}", bearer: "${BEARER}"'

describe('aws-sigv4', () => {
  test('a key pair is enough; optional members are omitted when they are not set', () => {
    const { auth, missing } = provider(aws, { ID: 'i', KEY: 'k' })
    expect(auth).toEqual({ scheme: 'aws-sigv4', service: 'acme', region: 'us-east-1', accessKey: 'i', secretKey: 'k' })
    expect(missing).toEqual([])
  })

  test('a bearer key is enough', () => {
    const { auth, missing } = provider(aws, { BEARER: 'b', REGION: 'eu-west-1' })
    expect(auth).toMatchObject({ region: 'eu-west-1', bearer: 'b' })
    expect(missing).toEqual([])
  })

  test('all that could be set is missing when neither is there, and half a pair wants its other half', () => {
    expect(provider(aws).missing).toEqual(['ID', 'KEY', 'BEARER'])
    expect(provider(aws, { ID: 'i', SESSION: 's' }).missing).toEqual(['KEY'])
  })

  test('a region cannot be an address', () => {
    expect(problems(aws, { REGION: 'https://x' })).toEqual([
      expect.stringContaining('must be of small letters, digits and -'),
    ])
  })
})

describe('google-service-account', () => {
  const google = 'scheme: google-service-account, credentials: "${GOOGLE}"'

  test('credentials are the text of a key file, or its path', () => {
    expect(provider(google, { GOOGLE: '/etc/key.json' }).auth).toEqual({
      scheme: 'google-service-account',
      credentials: '/etc/key.json',
    })
    expect(provider(google).missing).toEqual(['GOOGLE'])
    expect(problems(google, { GOOGLE: '{ "client_email": "x" ' })).toEqual([
      expect.stringContaining('begins like JSON but is not valid JSON'),
    ])
    expect(problems(google, { GOOGLE: '{"type":"authorized_user","refresh_token":"hush"}' })).toEqual([
      expect.stringMatching(/has no `client_email` and no `private_key`$/),
    ])
  })
})

describe('oauth-client-credentials', () => {
  const oauth =
    'scheme: oauth-client-credentials, token_url: "https://login.test/${TENANT}/token", client_id: "${CLIENT}", ' +
    'client_secret: "${SECRET}", scope: "x/.default"'

  test('every value may come from the environment', () => {
    expect(provider(oauth, { TENANT: 't', CLIENT: 'c', SECRET: 's' }).auth).toEqual({
      scheme: 'oauth-client-credentials',
      tokenUrl: 'https://login.test/t/token',
      clientId: 'c',
      clientSecret: 's',
      scope: 'x/.default',
    })
    expect(provider(oauth).missing).toEqual(['TENANT', 'CLIENT', 'SECRET'])
  })

  test('a secret must not be in the file, and a URL must be one', () => {
    expect(problems(oauth.replace('"${SECRET}"', 'hush'))).toEqual([
      expect.stringContaining('secrets do not stand in files'),
    ])
    expect(problems(oauth.replace('https:', 'ftp:'), { TENANT: 't', CLIENT: 'c', SECRET: 's' })).toEqual([
      expect.stringContaining('`token_url` must be an http or https address'),
    ])
  })
})

test('a scheme that is not there is told with the one that is meant', () => {
  expect(problems('scheme: baerer, secret: "${KEY}"')).toEqual([
    '4:17 there is no scheme `baerer`; did you mean `bearer`?',
  ])
})

test('members of another scheme are reported, and missing ones of a scheme', () => {
  expect(problems('scheme: bearer, secret: "${KEY}", region: x')).toEqual([
    expect.stringContaining('`auth` with the scheme bearer does not use `region`'),
  ])
  expect(problems('scheme: aws-sigv4, service: x, region: y')).toEqual([
    expect.stringContaining('needs `access_key`'),
    expect.stringContaining('needs `secret_key`'),
  ])
})
