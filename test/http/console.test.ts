import { readdirSync, readFileSync } from 'node:fs'
import { request as rawRequest } from 'node:http'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openConsoleFiles } from '../../src/http/console.ts'
import { type TestRouter, testRouter } from '../helpers/router.ts'
import { testEach } from '../helpers/slow.ts'
import { eventually } from '../helpers/time.ts'

let router: TestRouter
beforeAll(async () => {
  router = await testRouter()
})
afterAll(() => router.end())

/** The status, the headers and the bytes of a path that is sent as it is. */
async function get(path: string, headers: Record<string, string> = {}, method = 'GET', url = router.url) {
  const { promise, resolve, reject } = Promise.withResolvers<import('node:http').IncomingMessage>()
  rawRequest(url, { path, method, headers }, resolve).on('error', reject).end()
  const response = await promise
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  const bytes = Buffer.concat(chunks)
  return { status: response.statusCode, headers: response.headers, bytes, text: bytes.toString() }
}

describe('the pages of the console', () => {
  test('nothing in them may come from elsewhere, and no script may stand in them but the import map', async () => {
    const { status, headers, text } = await get('/console/')
    expect(status).toBe(200)
    const policy = String(headers['content-security-policy'])
    expect(policy).toMatch(
      /^default-src 'none'; script-src 'self' 'sha256-[^']+'; style-src 'self'; connect-src 'self';/,
    )
    expect(policy).not.toMatch(/unsafe|http|\*/)
    expect(text).not.toMatch(/(src|href)="(\/|\w+:)/)
    expect(headers).toMatchObject({ 'referrer-policy': 'no-referrer', 'x-content-type-options': 'nosniff' })
  })

  test('its files are scripts without types, and all that they import can be loaded', async () => {
    const { text: page } = await get('/console/')
    const { imports } = JSON.parse(/<script type="importmap">(.*?)<\/script>/.exec(page)?.[1] ?? '') as {
      imports: Record<string, string>
    }
    const seen = new Set<string>()
    const visit = async (path: string) => {
      if (seen.has(path)) return
      seen.add(path)
      const { status, headers, text } = await get(`/console/${path}`)
      expect([path, status, headers['content-type']]).toEqual([path, 200, 'text/javascript; charset=utf-8'])
      expect(text).not.toMatch(/^(?:export )?type \w+ =|import type/m)
      for (const [, name] of text.matchAll(/(?:from|import\()\s*["']([^"'$\s]+)["']/g)) {
        const url = name?.startsWith('.')
          ? new URL(name, `http://x/${path}`)
          : new URL(imports[name ?? ''] ?? 'missing:', 'http://x/')
        await visit(url.pathname.slice(1))
      }
    }
    await visit('main.ts')
    const own = readdirSync(join(import.meta.dirname, '../../console'), { recursive: true, encoding: 'utf8' })
    expect([...seen].filter((path) => !path.startsWith('lib/')).sort()).toEqual(
      own.filter((file) => file.endsWith('.ts')).sort(),
    )
  })

  test('the modules of the first page are asked for at once', async () => {
    const { text: page } = await get('/console/')
    const asked = [...page.matchAll(/<link rel="modulepreload" href="([^"]+)">/g)].map(([, path = '']) => path)
    expect(asked).toEqual(expect.arrayContaining(['main.ts', 'api.ts', 'pages/overview.ts', 'lib/signals-core.js']))
    expect(asked).not.toContain('pages/keys.ts')
    for (const path of asked) expect([path, (await get(`/console/${path}`)).status]).toEqual([path, 200])
  })

  test('what a browser has is not sent again; what it has not is sent as short as it takes it', async () => {
    const plain = await get('/console/main.ts')
    const { etag = '' } = plain.headers
    expect((await get('/console/main.ts', { 'if-none-match': etag })).status).toBe(304)
    const br = await get('/console/main.ts', { 'accept-encoding': 'gzip, deflate, br' })
    const gzip = await get('/console/main.ts', { 'accept-encoding': 'gzip;q=0.5, br;q=0' })
    expect([br.headers['content-encoding'], gzip.headers['content-encoding']]).toEqual(['br', 'gzip'])
    expect(brotliDecompressSync(br.bytes)).toEqual(plain.bytes)
    expect(gunzipSync(gzip.bytes)).toEqual(plain.bytes)
    expect(plain.headers.vary).toBe('accept-encoding')
  })

  test.each([
    '/console/../package.json',
    '/console/%2e%2e/package.json',
    '/console/..%2fpackage.json',
    '/console/tsconfig.json',
    '/console/pages',
    '/console/lib/../main.ts',
    '/console/__proto__',
    '/console/constructor',
  ])('%s is none of them', async (path) => {
    const { status, text } = await get(path)
    expect([status, JSON.parse(text).error.code]).toEqual([404, 'not_found'])
  })

  test('they are only read', async () => {
    const { status, headers } = await get('/console/', {}, 'POST')
    expect([status, headers.allow]).toEqual([405, 'GET, HEAD'])
    const head = await get('/console/', {}, 'HEAD')
    expect([head.status, head.bytes.length]).toEqual([200, 0])
  })

  test('/ sends browsers to them by a relative link, and tells programs where things are', async () => {
    const browser = await get('/', { accept: 'text/html,application/xhtml+xml' })
    expect([browser.status, browser.headers.location, browser.headers.vary]).toEqual([302, 'console/', 'accept'])
    expect((await get('/console')).headers.location).toBe('console/')
    const { status, text } = await get('/', { accept: '*/*' })
    expect([status, JSON.parse(text)]).toMatchObject([200, { base_url: '/v1', console: '/console/' }])
  })
})

test('they can be switched off, and on again without a restart', async () => {
  const off = await testRouter({ settings: { console: { enabled: false } } })
  try {
    const path = '/console/'
    const { status, text } = await get(path, {}, 'GET', off.url)
    expect([status, JSON.parse(text).error.message]).toEqual([
      404,
      'The console is switched off: console.enabled is false in config.yaml.',
    ])
    const { text: home } = await get('/', { accept: 'text/html' }, 'GET', off.url)
    expect(JSON.parse(home)).not.toHaveProperty('console')
    const config = readFileSync(off.snapshot().config.path, 'utf8')
    off.put(
      'config.yaml',
      config.replace('"enabled":false', '"enabled":true').replace('enabled: false', 'enabled: true'),
    )
    await eventually(async () => expect((await get(path, {}, 'GET', off.url)).status).toBe(200))
  } finally {
    await off.end()
  }
})

testEach([1, 2], { slowIf: (threads) => threads > 1 })(
  'they are served where the management API is, with %i threads',
  async (threads) => {
    const apart = await testRouter({ settings: { manage: { port: 0 } }, threads })
    try {
      const at = async (path: string, url: string) => (await get(path, { accept: 'text/html' }, 'GET', url)).status
      expect(await at('/console/', apart.manageUrl)).toBe(200)
      expect(await at('/', apart.manageUrl)).toBe(302)
      expect(await at('/console/', apart.url)).toBe(404)
      expect(await at('/', apart.url)).toBe(200)
      // The pages show models.
      expect(await at('/v1/models/all', apart.manageUrl)).toBe(200)
    } finally {
      await apart.end()
    }
  },
)

test('what a browser loads at first is less than 100 kB, and all pages are less than 180 kB', async () => {
  const files = openConsoleFiles()
  const sizeOf = async (paths: readonly string[]) => {
    const sizes = paths.map(async (path) => (await files.file(path))?.bytes.br.length ?? Number.NaN)
    return (await Promise.all(sizes)).reduce((sum, size) => sum + size)
  }
  const page = (await files.page()).bytes
  const linked = [...page.identity.toString().matchAll(/<(?:link|script)[^>]* (?:href|src)="\.?\/?([^"]+)"/g)]
  const first = new Set(linked.map(([, path = '']) => path))
  expect([...first]).toEqual(expect.arrayContaining(['main.ts', 'pages/overview.ts', 'style.css', 'lib/preact.js']))
  // The chart library is imported by the first page, although nothing waits for it.
  expect(page.br.length + (await sizeOf([...first, 'lib/uplot.js']))).toBeLessThan(100_000)
  const own = readdirSync(join(import.meta.dirname, '../../console'), { recursive: true, encoding: 'utf8' })
  const libraries = ['preact', 'hooks', 'signals', 'signals-core', 'htm', 'uplot'].map((name) => `lib/${name}.js`)
  expect(
    await sizeOf([...own.filter((file) => /\.(ts|css|svg)$/.test(file)), ...libraries, 'lib/uplot.css']),
  ).toBeLessThan(180_000)
})
