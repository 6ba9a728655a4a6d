import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { RouterError } from '../../src/core/errors.ts'
import { type MediaSettings, openFetcher, type ResolveName, safeUrl } from '../../src/upstream/files/fetcher.ts'
import { pause, within } from '../helpers/provider.ts'
import { limit } from '../helpers/time.ts'

const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')

/** Every requested path, and its reply. */
const requested: string[] = []
let left: Promise<void>
const pages: Record<string, (response: ServerResponse, request: IncomingMessage) => void> = {
  '/cat.png': (response) => response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' }).end(png),
  '/notes': (response) => response.writeHead(200, { 'content-type': 'Text/CSV; charset=utf-8' }).end('a,b'),
  '/notes.md': (response) => response.writeHead(200, { 'content-type': 'binary/octet-stream' }).end('# a'),
  '/blob': (response) => response.writeHead(200, { 'content-type': 'application/octet-stream' }).end('?'),
  '/here': (response) => response.writeHead(302, { location: '/there?signed=secret' }).end(),
  '/there?signed=secret': (response) => response.writeHead(307, { location: 'cat.png#top' }).end('moved'),
  '/round': (response) => response.writeHead(301, { location: '/round' }).end(),
  '/nowhere': (response) => response.writeHead(302).end(),
  '/lost': (response) => response.writeHead(302, { location: 'http://' }).end(),
  '/missing': (response) => response.writeHead(404, { 'content-type': 'image/png' }).end(png),
  '/empty': (response) => response.writeHead(200).end(),
  '/packed': (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(png),
  '/announced': (response) => void response.writeHead(200, { 'content-length': 2 * 1024 ** 3 }).write(png),
  '/endless': (response) => pour(response),
  '/crumbs': (response) => crumble(response, 3_000),
  '/cut': (response) =>
    void response.writeHead(200, { 'content-length': 99 }).write(png, () => setTimeout(() => response.destroy(), 10)),
  '/stalled': (response) => void response.writeHead(200).write(png),
  '/silent': () => {},
  '/reset': (response) => void response.socket?.resetAndDestroy(),
}

const server = createServer((request, response) => {
  const path = request.url ?? ''
  requested.push(path)
  left = new Promise((resolve) => response.once('close', resolve))
  const away = /^\/to\?(.*)$/.exec(path)
  const location = decodeURIComponent(away?.[1] ?? '').replace(/[^\x20-\x7e]/g, encodeURIComponent)
  if (away) response.writeHead(302, { location }).end()
  else pages[path]?.(response, request)
})
let port: number

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
})
afterAll(() => {
  server.close()
  server.closeAllConnections()
})
beforeEach(() => {
  requested.length = 0
})

const usual: MediaSettings = {
  schemes: ['https', 'http'],
  maxBytes: 100_000,
  maxTotalBytes: 1_000_000,
  maxFiles: 9,
  timeoutMs: 2_000,
  allowHosts: ['files.test'],
}

/** `files.test` is the loopback server; all other names resolve as configured. */
const names: Record<string, string[]> = { 'files.test': ['127.0.0.1'] }
const resolved: string[] = []
const resolveName: ResolveName = async (name) => {
  resolved.push(name)
  const found = names[name]
  if (!found) throw Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: 'ENOTFOUND' })
  return found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
}
const open = (settings: Partial<MediaSettings> = {}) => openFetcher({ ...usual, ...settings }, resolveName)
const at = (path: string) => `http://files.test:${port}${path}`
const never = new AbortController().signal

async function refused(url: string, settings: Partial<MediaSettings> = {}): Promise<string> {
  const fetched = open(settings)(url, never)
  const error = await within(
    5_000,
    url,
    fetched.then(JSON.stringify, (thrown: unknown) => thrown),
  )
  expect(error).toBeInstanceOf(RouterError)
  expect((error as RouterError).code).toBe('invalid_request')
  return (error as RouterError).message
}

describe('a file', () => {
  test.each([
    ['/cat.png', { data: png.toString('base64'), media_type: 'image/png' }],
    ['/notes', { data: 'YSxi', media_type: 'text/csv' }],
    ['/notes.md', { data: 'IyBh', media_type: 'text/markdown' }],
    ['/blob', { data: 'Pw==', media_type: 'application/octet-stream' }],
  ])('%s comes in base64, with the type its bytes, its server or its name tell', async (path, file) => {
    expect(await open()(at(path), never)).toEqual(file)
  })

  test('is followed to where it has moved', async () => {
    expect(await open()(at('/here'), never)).toMatchObject({ media_type: 'image/png' })
    expect(requested).toEqual(['/here', '/there?signed=secret', '/cat.png'])
  })

  test('is requested without credentials, cookies or compression', async () => {
    let headers: IncomingMessage['headers'] = {}
    pages['/seen'] = (response, request) => {
      headers = request.headers
      response.writeHead(200).end(png)
    }
    await open()(at('/seen'), never)
    expect(headers).toMatchObject({ host: `files.test:${port}`, 'accept-encoding': 'identity' })
    expect(Object.keys(headers).toSorted()).toEqual(['accept', 'accept-encoding', 'connection', 'host', 'user-agent'])
  })

  test('in crumbs of a byte is whole', async () => {
    const { data } = await open()(at('/crumbs'), never)
    expect(Buffer.from(data, 'base64')).toEqual(Buffer.alloc(3_000, 7))
  })
})

describe('an address that is not public', () => {
  const literal = [
    ...['127.0.0.1', '127.1', '127.0.0.1.', '2130706433', '0177.0.0.1', '0x7f000001', '0x7f.1', '017700000001'],
    ...['0.0.0.0', '0', '10.0.0.1', '169.254.169.254', '0xa9fea9fe', '2852039166', '0251.0376.0251.0376'],
    ...['192.168.1.1', '172.16.0.1', '100.64.0.1', '255.255.255.255', '１２７.0.0.1', '①②⑦.0.0.1', '%3127.0.0.1'],
    ...['[::1]', '[::]', '[::ffff:10.0.0.1]', '[::ffff:a9fe:a9fe]', '[::ffff:127.0.0.1]', '[0:0:0:0:0:ffff:7f00:1]'],
    ...['[64:ff9b::10.0.0.1]', '[2002:7f00:1::]', '[fd00:ec2::254]', '[fe80::1]', '[ff02::1]'],
  ]
  test.each(literal)('is refused, spelled %s', async (host) => {
    expect(await refused(`http://${host}:${port}/cat.png`)).toMatch(/the address of its host is not public\.$/)
    expect(await refused(at(`/to?${encodeURIComponent(`http://${host}:${port}/cat.png`)}`))).toMatch(
      /after a redirect, the address of its host is not public\.$/,
    )
    expect(requested.filter((path) => !path.startsWith('/to'))).toEqual([])
  })

  const addresses = ['127.0.0.1', '::1', '::ffff:10.0.0.1', '0.0.0.0', '169.254.169.254', '10.1.2.3', 'fe80::1%eth0']
  test.each(addresses)('is refused behind a name: %s', async (address) => {
    names['inside.test'] = [address]
    names['half.test'] = ['93.184.216.34', address, '2606:4700::1111']
    for (const name of ['inside.test', 'half.test']) {
      expect(await refused(`http://${name}:${port}/cat.png`)).toContain('is not public')
      expect(await refused(at(`/to?http://${name}:${port}/cat.png`))).toContain('after a redirect')
    }
    expect(requested.filter((path) => !path.startsWith('/to'))).toEqual([])
  })

  test('is refused by its usual names, with the resolver of the system', async () => {
    const fetchMedia = openFetcher(usual)
    for (const name of ['localhost', 'LOCALHOST', 'localhost.']) {
      await expect(fetchMedia(`http://${name}:${port}/cat.png`, never)).rejects.toThrow(/not public|cannot be resolved/)
    }
    expect(requested).toEqual([])
  })

  test('is never in a message for the client', async () => {
    names['inside.test'] = ['10.11.12.13']
    expect(await refused('https://inside.test/a.png?token=secret')).toBe(
      'The file at https://inside.test/a.png cannot be fetched: the address of its host is not public.',
    )
    expect(await refused(at('/to?http://10.11.12.13/private?x'))).not.toContain('10.11.12.13')
  })

  test('may be used where the operator vouches for the host, on its port if one is named', async () => {
    const url = `http://127.0.0.1:${port}/cat.png`
    for (const allowHosts of [['127.0.0.1'], [`127.0.0.1:${port}`]]) {
      expect(await open({ allowHosts })(url, never)).toMatchObject({ media_type: 'image/png' })
    }
    expect(await refused(url, { allowHosts: ['127.0.0.1:1'] })).toContain('not public')
    expect(await refused(url, { allowHosts: ['localhost', '0.0.1', '127.0.0.1:80'] })).toContain('not public')
  })
})

describe('names', () => {
  test('are resolved once for each hop, and the connection goes to the checked address', async () => {
    resolved.length = 0
    const answers = [['127.0.0.1'], ['10.0.0.1']]
    const rebinding: ResolveName = async (name) => {
      resolved.push(name)
      return (answers.shift() ?? []).map((address) => ({ address, family: 4 }))
    }
    const fetchMedia = openFetcher(usual, rebinding)
    expect(await fetchMedia(at('/cat.png'), never)).toMatchObject({ media_type: 'image/png' })
    expect(resolved).toEqual(['files.test'])
  })

  test('that do not exist are the client’s mistake', async () => {
    expect(await refused('https://no.test/a.png')).toContain('its host name cannot be resolved')
    names['nothing.test'] = []
    expect(await refused('https://nothing.test/a.png')).toContain('its host name cannot be resolved')
  })

  test('that take for ever to resolve do not outlast the limit', async () => {
    const fetchMedia = openFetcher({ ...usual, timeoutMs: 100 }, () => new Promise(() => {}))
    await expect(within(5_000, 'the limit', fetchMedia('https://slow.test/', never))).rejects.toThrow('within 100 ms')
  })
})

describe('a URL', () => {
  test.each([
    'file:///etc/passwd',
    'gopher://files.test:70/_x',
    'ftp://files.test/a.png',
    'data:text/plain,x',
    'gs://a/b',
  ])('of another scheme is refused, and so is a redirect to it: %s', async (url) => {
    const scheme = url.split(':')[0]
    expect(await refused(url)).toContain(`only https or http is fetched, not ${scheme}`)
    expect(await refused(at(`/to?${encodeURIComponent(url)}`))).toContain(`after a redirect, only https or http`)
  })

  test('is https unless the operator configures otherwise', async () => {
    expect(await refused(at('/cat.png'), { schemes: ['https'] })).toContain('only https is fetched, not http')
    expect(requested).toEqual([])
    expect(await refused('ftp://files.test/', { schemes: ['ftp'] })).toContain('not ftp')
  })

  test.each([
    ['https://u:pass@files.test/cat.png?token=1#here', 'https://files.test/cat.png'],
    ['https://u:pass@files.test:port/cat.png?token=1', 'https://files.test:port/cat.png'],
    [`https://files.test/${'x'.repeat(300)}`, `https://files.test/${'x'.repeat(181)}…`],
  ])('is shown without what may be secret: %s', (url, shown) => {
    expect(safeUrl(url)).toBe(shown)
  })

  test('with credentials is refused, and they are not repeated', async () => {
    for (const url of [`http://u:pass@files.test:${port}/cat.png`, `http://u@files.test:${port}/cat.png`]) {
      const message = await refused(url)
      expect(message).toContain('contains a user name or a password')
      expect(message).not.toContain('u:pass')
    }
    expect(await refused(at(`/to?http://u:pass@files.test:${port}/cat.png`))).toContain('after a redirect')
    expect(requested).not.toContain('/cat.png')
  })

  test.each([
    '',
    'cat.png',
    'http://',
    'http://user:pass@a b/',
    'http://[::1',
    'http://1.2.3.4.5.6/',
    'https://x:99999/',
  ])('that is none is refused: %j', async (url) => {
    const message = await refused(url)
    expect(message).toContain('not a valid URL')
    expect(message).not.toContain('pass')
  })

  test.each([
    ['/missing', 'its server answered with status 404'],
    ['/empty', 'it is empty'],
    ['/round', 'it redirects more than 5 times'],
    ['/lost', 'after a redirect, its address is not a valid URL'],
    ['/packed', 'its server sends it compressed'],
    ['/cut', 'the connection to its host failed'],
    ['/reset', 'the connection to its host failed ('],
  ])('whose host answers with %s is told so', async (path, what) => {
    expect(await refused(at(path))).toContain(what)
    expect(requested.length).toBeLessThanOrEqual(6)
  })

  test('whose host cannot be reached is reported as such, without addresses', async () => {
    const message = await refused('http://files.test:1/cat.png')
    expect(message).toContain('the connection to its host failed (ECONNREFUSED)')
    expect(message).not.toContain('127.0.0.1')
  })
})

describe('too much', () => {
  test('is not begun when it is announced: 2 GB', async () => {
    expect(await refused(at('/announced'))).toContain('larger than 100000 bytes, the media.max_bytes')
    await within(5_000, 'letting go', left)
  })

  test('is stopped at the limit when it just comes: 2 GB, or without end', async () => {
    poured = 0
    expect(await refused(at('/endless'))).toContain('larger than 100000 bytes')
    await within(5_000, 'letting go', left)
    // The bytes that the sockets of both sides had taken.
    expect(poured).toBeLessThan(20_000_000)
  })

  test('of exactly the limit is not too much', async () => {
    const { data } = await open({ maxBytes: 3_000 })(at('/crumbs'), never)
    expect(Buffer.from(data, 'base64')).toHaveLength(3_000)
    expect(await refused(at('/crumbs'), { maxBytes: 2_999 })).toContain('larger than 2999 bytes')
  })

  test('for the whole call is stopped by who counts', async () => {
    let seen = 0
    const spend = (bytes: number) => {
      seen += bytes
      if (seen > 50_000) throw new RouterError('invalid_request', 'enough')
    }
    await expect(open()(at('/endless'), never, spend)).rejects.toThrow('enough')
    await within(5_000, 'letting go', left)
  })
})

describe('too long', () => {
  test.each(['/silent', '/stalled'])('is stopped: %s', async (path) => {
    const begun = performance.now()
    expect(await refused(at(path), { timeoutMs: 150 })).toContain('it did not arrive within 150 ms')
    expect(performance.now() - begun).toBeLessThan(limit(2_000))
    await within(5_000, 'letting go', left)
  })

  test('for a client that has left is stopped at once', async () => {
    const client = new AbortController()
    const fetched = open()(at('/stalled'), client.signal)
    const disconnect = new RouterError('client_gone', 'The client disconnected.')
    setTimeout(() => client.abort(disconnect), 50)
    await expect(within(5_000, 'stopping', fetched)).rejects.toBe(disconnect)
    await within(5_000, 'letting go', left)
    await expect(open()(at('/cat.png'), client.signal)).rejects.toBe(disconnect)
  })
})

let poured = 0

/** Writes for as long as the other side reads. */
async function pour(response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'image/png' })
  const chunk = Buffer.alloc(65_536, 1)
  const closed = new Promise((resolve) => response.once('close', resolve))
  while (!response.destroyed && poured < 2 * 1024 ** 3) {
    poured += chunk.length
    if (!response.write(chunk)) await Promise.race([closed, new Promise((resolve) => response.once('drain', resolve))])
  }
}

async function crumble(response: ServerResponse, count: number): Promise<void> {
  response.writeHead(200)
  for (let index = 0; index < count; index++) {
    response.write(Buffer.from([7]))
    if (index % 500 === 0) await pause(1)
  }
  response.end()
}
