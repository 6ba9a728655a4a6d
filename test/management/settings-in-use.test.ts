import { expect, onTestFinished, test } from 'vitest'
import { schemaOf, validator } from '../helpers/openapi.ts'
import { simulatorOnly, testRouter } from '../helpers/router.ts'
import { administration } from './administration.ts'

const matches = validator(schemaOf('UsedSettings'))

const manifest = (slug: string, address: string) => `slug: ${slug}
name: ${slug}
base_url: ${address}
auth: { scheme: bearer, secret: "\${${slug.toUpperCase()}_KEY}" }
dialect: openai-chat
models: { m1: { api: chat } }
`
const files = {
  ...simulatorOnly,
  'providers/moved.yaml': manifest('moved', 'https://api.moved.example/v1'),
  'providers/chosen.yaml': manifest('chosen', '"${CHOSEN_URL:-https://api.chosen.example/v1}"'),
  'providers/plain.yaml': manifest('plain', '"${PLAIN_URL:-https://api.plain.example/v1}"'),
  'providers/needed.yaml': manifest('needed', 'https://${NEEDED_HOST}/v1'),
  'providers/follower.yaml': `slug: follower
name: follower
account_of: moved
base_url: { of: moved, path: /more }
auth: { scheme: bearer, secret: "\${MOVED_KEY}" }
dialect: openai-chat
models: { m1: { api: chat } }
`,
  'plugins/night.ts': `import { definePlugin } from 'inference-router/plugin'
export default definePlugin({
  options: { properties: { token: { type: 'string' }, hours: { type: 'integer', default: 8 } } },
  setup: () => ({ request() { return undefined } }),
})
`,
}
const secrets = {
  MOVED_KEY: 'sk-moved-0123456789',
  CHOSEN_KEY: 'sk-chosen-0123456789',
  PLAIN_KEY: 'sk-plain-0123456789',
}
const env = {
  ...secrets,
  CHOSEN_URL: 'https://me:hunter22@eu.chosen.example/v1?token=k1ngf1sher',
  NEEDED_HOST: 'needed.example',
  NEEDED_KEY: 'sk-needed-0123456789',
  CLIENT_TIMEOUT: '45s',
}

test('are shown with their origin, and addresses that were overridden with the usual ones; no secret is sent', async () => {
  const router = await testRouter({
    files,
    env,
    settings: {
      server: { host: '127.0.0.1', port: 0, client_timeout: '${CLIENT_TIMEOUT}' },
      providers: {
        moved: { base_url: 'https://proxy:pa55word@10.0.0.7/moved/v1' },
        plain: { timeouts: { connect: '5s' } },
      },
      plugins: [{ name: 'night', options: { token: 'a-token-of-somebody', hours: 7 } }],
      routing: { retries: 2 },
    },
  })
  onTestFinished(() => router.end())
  const { status, body, text } = await administration(router).get('/instance/settings')
  expect(status).toBe(200)
  expect(matches(body), JSON.stringify(matches.errors)).toBe(true)
  const settings = new Map((body.settings as { name: string }[]).map((one) => [one.name, one]))
  expect(settings.get('server.client_timeout')).toMatchObject({
    value: '45s',
    from: 'environment',
    variables: ['CLIENT_TIMEOUT'],
    needs_restart: false,
  })
  expect(settings.get('server.port')).toMatchObject({ from: 'config', needs_restart: true })
  expect(settings.get('routing.retries')).toMatchObject({ value: 2, from: 'config' })
  expect(settings.get('routing.sort')).toMatchObject({ value: 'order', from: 'default' })
  expect(settings.get('answers.body_limit')).toMatchObject({ value: '32mb', from: 'default' })
  const providers = body.providers as { slug: string }[]
  expect(providers).toEqual([
    {
      slug: 'chosen',
      enabled: true,
      settings: [],
      base_url: 'https://eu.chosen.example/v1',
      usual_base_url: 'https://api.chosen.example/v1',
      overridden_by: 'environment',
      variables: ['CHOSEN_URL'],
    },
    {
      slug: 'follower',
      enabled: true,
      settings: [],
      base_url: 'https://10.0.0.7/moved/v1/more',
      usual_base_url: 'https://api.moved.example/v1/more',
      overridden_by: 'config',
      variables: [],
    },
    {
      slug: 'moved',
      enabled: true,
      settings: ['base_url'],
      base_url: 'https://10.0.0.7/moved/v1',
      usual_base_url: 'https://api.moved.example/v1',
      overridden_by: 'config',
      variables: [],
    },
    {
      slug: 'plain',
      enabled: true,
      settings: ['timeouts'],
      base_url: 'https://api.plain.example/v1',
      variables: ['PLAIN_URL'],
    },
  ])
  expect(body.plugins).toEqual([{ name: 'night', options: { token: '(text)', hours: 7 } }])
  for (const secret of [...Object.values(secrets), 'hunter22', 'k1ngf1sher', 'pa55word', 'a-token-of-somebody'])
    expect(text).not.toContain(secret)
})
