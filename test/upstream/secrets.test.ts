import { expect, test } from 'vitest'
import { RouterError } from '../../src/core/errors.ts'
import type { Auth } from '../../src/manifest/provider.ts'
import { redact, rememberIssued, withoutSecretsOf } from '../../src/upstream/auth/secrets.ts'

const secret = 'sk-live-"q/7+w=Zk9~Tn3&Vb6%Xc2\\Lm8 Pd4/Rs5+Gh1'
const bearer: Auth = { scheme: 'bearer', secret }
const provider = (auth: Auth, more: object = {}) => ({
  auth,
  headers: {},
  baseUrl: 'https://api.example.com/v1',
  ...more,
})

/** The longest piece of one text that is in another. */
function longestPiece(secret: string, text: string): number {
  let longest = 0
  for (let from = 0; from < secret.length; from++) {
    while (text.includes(secret.slice(from, from + longest + 1)) && from + longest < secret.length) longest++
  }
  return longest
}

const forms: { [name: string]: (secret: string) => string } = {
  plain: (text) => text,
  'URL-encoded': encodeURIComponent,
  'URL-encoded in small letters': (text) => encodeURIComponent(text).toLowerCase(),
  'form-encoded': (text) => new URLSearchParams({ key: text }).toString(),
  'JSON text': (text) => JSON.stringify({ text }),
  'JSON text in JSON text': (text) => JSON.stringify(JSON.stringify({ text })),
  'PHP JSON': (text) => JSON.stringify(text).replaceAll('/', '\\/'),
  base64: (text) => Buffer.from(text).toString('base64'),
  'base64 of a header': (text) => Buffer.from(`Bearer ${text}`).toString('base64'),
  'Basic of one letter': (text) => `Basic ${Buffer.from(`u:${text}`).toString('base64')}`,
  base64url: (text) => Buffer.from(`:${text}:`).toString('base64url'),
  hexadecimal: (text) => Buffer.from(text).toString('hex'),
  HEXADECIMAL: (text) => Buffer.from(text).toString('hex').toUpperCase(),
}

test.each(Object.entries(forms))('a secret written as %s is hidden, whole and cut anywhere', (_, write) => {
  const written = write(secret)
  for (const [from, to] of [
    [0, written.length],
    [0, 30],
    [7, written.length],
    [5, 40],
    [0, written.length - 3],
  ] as const) {
    const cut = written.slice(from, to)
    const shown = redact(provider(bearer), `The key ${cut}... is wrong.`)
    expect(shown).toMatch(/^The key .* is wrong\.$/)
    expect(longestPiece(secret, shown), shown).toBeLessThan(10)
    // Without what stands around the secret in some forms.
    expect(longestPiece(written.slice(12, -12), shown), shown).toBeLessThan(12)
  }
})

test('a text without the secret stays as it is, and what surrounds a secret', () => {
  const text = 'sk-live- is how keys begin; "api.example.com" is the host of this one. '.repeat(20)
  expect(redact(provider(bearer), text)).toBe(text)
  expect(redact(provider(bearer), `a ${secret}${secret} b ${secret} c`)).toBe('a [secret] b [secret] c')
})

test.each<[string, Auth, string[]]>([
  ['header', { scheme: 'header', header: 'x-key', secret }, [secret]],
  ['query', { scheme: 'query', parameter: 'key', secret }, [secret]],
  ['short', { scheme: 'bearer', secret: 'k3y-7' }, ['k3y-7']],
  [
    'aws-sigv4',
    {
      scheme: 'aws-sigv4',
      service: 'bedrock',
      region: 'eu-west-1',
      accessKey: 'AKIAIOSFODNN7EXAMPLE',
      secretKey: 'wJalrXUtnFEMI/K7MDENG',
      sessionToken: 'FwoGZXIvYXdzEBYaDH7',
      bearer: 'bedrock-api-key-abcdef',
    },
    ['AKIAIOSFODNN7EXAMPLE', 'wJalrXUtnFEMI/K7MDENG', 'FwoGZXIvYXdzEBYaDH7', 'bedrock-api-key-abcdef'],
  ],
  [
    'google-service-account',
    {
      scheme: 'google-service-account',
      credentials: JSON.stringify({
        client_email: 'robot@my-project.iam.gserviceaccount.com',
        private_key_id: '0123456789abcdef0123',
        private_key:
          '-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END PRIVATE KEY-----\n',
      }),
    },
    ['0123456789abcdef0123', 'MIIEvQIBADANBgkqhkiG9w0B', 'AQEFAASCBKcwggSjAgEAAoIB'],
  ],
  [
    'oauth-client-credentials',
    { scheme: 'oauth-client-credentials', tokenUrl: 'https://t.example', clientId: 'me', clientSecret: secret },
    [secret],
  ],
])('every secret of %s is hidden', (_, auth, secrets) => {
  for (const text of secrets) expect(redact(provider(auth), `It was ${text}!`)).toBe('It was [secret]!')
  rememberIssued(auth, 'issued-token-0f1e2d3c')
  expect(redact(provider(auth), 'It was issued-token-0f1e2d3c!')).toBe('It was [secret]!')
})

test('a key file keeps its names: they tell an operator which one it is', () => {
  const credentials = JSON.stringify({ client_email: 'robot@my-project.iam.gserviceaccount.com', private_key: 'x' })
  const auth: Auth = { scheme: 'google-service-account', credentials }
  const text = 'robot@my-project.iam.gserviceaccount.com may not do this'
  expect(redact(provider(auth), text)).toBe(text)
})

test('headers and addresses of providers have secrets too', () => {
  const more = {
    headers: { 'x-api-token': 'header-secret-1a2b3c', 'x-region': 'a-region-of-the-world' },
    baseUrl: 'https://me:password-1a2b3c@api.example.com/v1?code=parameter-1a2b3c',
  }
  const text = 'header-secret-1a2b3c password-1a2b3c parameter-1a2b3c a-region-of-the-world'
  expect(redact(provider({ scheme: 'none' }, more), text)).toBe('[secret] [secret] [secret] a-region-of-the-world')
})

test('of two providers with the same credential and headers each address is hidden in its own texts', () => {
  const auth: Auth = { scheme: 'none' }
  const one = provider(auth, { baseUrl: 'https://me:password-1a2b3c@api.example.com/v1' })
  const other = { ...one, baseUrl: 'https://me:password-4d5e6f@api.example.com/v1' }
  const text = 'password-1a2b3c password-4d5e6f'
  expect([one, other, one].map((each) => redact(each, text))).toEqual([
    '[secret] password-4d5e6f',
    'password-1a2b3c [secret]',
    '[secret] password-4d5e6f',
  ])
})

test.each([
  ['http://10.0.0.7:8000/v1', 'No route at http://10.0.0.7:8000/v1/chat', 'No route at http://[address]/v1/chat'],
  ['http://[fd00::7]:80/v1', 'connect ECONNREFUSED [fd00::7]:80', 'connect ECONNREFUSED [address]:80'],
  ['http://gpu-7:8000', 'http://gpu-7/v1 and gpu-7:8000 failed', 'http://[address]/v1 and [address] failed'],
  [
    'http://ollama/api',
    'The model ollama/x at http://ollama/api failed',
    'The model ollama/x at http://[address]/api failed',
  ],
  ['http://models.internal/v1', 'upstream models.internal timed out', 'upstream [address] timed out'],
  ['https://api.example.com/v1', 'See https://api.example.com/docs', 'See https://api.example.com/docs'],
  ['https://8.8.8.8/v1', 'See https://8.8.8.8/docs', 'See https://8.8.8.8/docs'],
])(
  'what a provider at %s says of its address is hidden from clients where it is private, not in the log',
  (baseUrl, said, shown) => {
    const error = new RouterError('provider_failed', said, { provider: 'p', forLog: said })
    withoutSecretsOf({ auth: { scheme: 'none' }, headers: {}, baseUrl }, error)
    expect([error.message, error.forLog]).toEqual([shown, said])
  },
)

test('a long text is cut, so that hiding takes no time', () => {
  const shown = redact(provider(bearer), `${'x'.repeat(3_990)}${secret}${'y'.repeat(50_000_000)}`)
  expect(shown.length).toBeLessThan(4_010)
  expect(longestPiece(secret, shown)).toBeLessThan(10)
})
