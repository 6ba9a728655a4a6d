import { hash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { RouterError } from '../core/errors.ts'
import type { Handler, Request, Response } from './app.ts'
import { headersOf, isKnown, respond } from './respond.ts'

/** Settings that decide whether there is a console. */
type ConsoleSettings = { enabled: boolean }

/**
 * Serves `/console/`, the pages for everything that the management API shows and changes, and `/`, which sends browsers there and shows
 * programs where things are. Everything else is left to the next handler.
 */
export function consolePages(settings: () => ConsoleSettings): Handler {
  const files = openConsoleFiles()
  return async (request, response, next) => {
    const { path } = request
    if (path !== '/' && path !== '/console' && !path.startsWith('/console/')) return next()
    requireReading(request, response)
    const { enabled } = settings()
    if (path === '/') return sendHome(request, response, enabled)
    if (!enabled)
      throw new RouterError('not_found', 'The console is switched off: console.enabled is false in config.yaml.')
    if (path === '/console') return redirect(response, 'console/')
    if (path === '/console/') {
      const page = await files.page()
      Object.assign(headersOf(response), pageHeaders(page.scriptHash))
      return send(request, response, page)
    }
    const file = await files.file(path.slice('/console/'.length))
    if (!file) throw new RouterError('not_found', `There is no ${path} here.`)
    send(request, response, file)
  }
}

/** Serves `/` where calls are served and the management API is elsewhere: it shows programs where things are. */
export function homePage(): Handler {
  return (request, response, next) => {
    if (request.path !== '/') return next()
    requireReading(request, response)
    sendHome(request, response, false)
  }
}

function requireReading({ method, path }: Request, response: Response): void {
  if (method === 'GET' || method === 'HEAD') return
  headersOf(response).allow = 'GET, HEAD'
  throw new RouterError('method_not_allowed', `${path} supports GET, HEAD, not ${method}.`)
}

function sendHome({ headers }: Request, response: Response, hasConsole: boolean): void {
  // The same address answers both.
  headersOf(response).vary = 'accept'
  if (hasConsole && headers.accept?.includes('text/html')) {
    redirect(response, 'console/')
    return
  }
  const places = {
    service: 'inference-router',
    base_url: '/v1',
    models: '/v1/models',
    openapi: '/openapi.json',
    health: '/health',
    ready: '/ready',
    ...(hasConsole && { console: '/console/' }),
  }
  respond(response, 200, JSON.stringify(places))
}

/** Redirects to a path beside that of the request, so that it stays behind the prefix of a proxy. */
function redirect(response: Response, location: string): void {
  Object.assign(headersOf(response), { location, 'cache-control': 'no-cache' })
  respond(response, 302, '')
}

function send({ headers }: Request, response: Response, { mediaType, etag, bytes }: ConsoleFile): void {
  const own = headersOf(response)
  Object.assign(own, {
    etag,
    vary: 'accept-encoding',
    'cache-control': 'no-cache',
    'x-content-type-options': 'nosniff',
  })
  if (isKnown(etag, headers['if-none-match'])) {
    respond(response, 304)
    return
  }
  const encoding = encodingFor(headers['accept-encoding'])
  if (encoding !== 'identity') own['content-encoding'] = encoding
  respond(response, 200, bytes[encoding], mediaType)
}

/** Returns the shortest encoding that the client takes; a client that weighs them differently still gets one that it takes. */
function encodingFor(accepted: string | string[] = ''): Encoding {
  const taken = String(accepted)
    .split(',')
    .map((item) => item.trim().toLowerCase())
    .filter((item) => !/;\s*q=0(\.0*)?$/.test(item))
    .map((item) => item.split(';')[0])
  return (['br', 'gzip'] as const).find((encoding) => taken.includes(encoding)) ?? 'identity'
}

/** Returns the headers of the page: it loads nothing from elsewhere, sends nothing there, and cannot be framed by another page. */
function pageHeaders(scriptHash: string): Readonly<Record<string, string>> {
  const policy = [
    "default-src 'none'",
    `script-src 'self' '${scriptHash}'`,
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data: blob:",
    'media-src blob:',
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ]
  return {
    'content-security-policy': policy.join('; '),
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
  }
}

/** A file of the console as it is sent: its bytes by `Content-Encoding`. */
type ConsoleFile = { mediaType: string; etag: string; bytes: Readonly<Record<Encoding, Buffer>> }
type Encoding = 'br' | 'gzip' | 'identity'

/** The page itself, and what its scripts may be. */
type ConsolePage = ConsoleFile & { scriptHash: string }

/** All files of the console, by their path below `/console/`. */
type ConsoleFiles = { page(): Promise<ConsolePage>; file(path: string): Promise<ConsoleFile | undefined> }

type Read = (path: string) => Promise<ConsoleFile | undefined>

const folder = join(import.meta.dirname, '../../console')

/** Packages that the console imports, by the name in its imports: where each is served, and where it is. */
const libraries: { readonly [name: string]: { path: string; module: string } } = {
  preact: { path: 'lib/preact.js', module: 'preact' },
  'preact/hooks': { path: 'lib/hooks.js', module: 'preact/hooks' },
  '@preact/signals-core': { path: 'lib/signals-core.js', module: '@preact/signals-core' },
  '@preact/signals': { path: 'lib/signals.js', module: '@preact/signals' },
  htm: { path: 'lib/htm.js', module: 'htm' },
  uplot: { path: 'lib/uplot.js', module: 'uplot/dist/uPlot.esm.js' },
}
const otherFiles: { readonly [path: string]: string } = { 'lib/uplot.css': 'uplot/dist/uPlot.min.css' }

const mediaTypes: { readonly [extension: string]: string } = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.ts': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** Opens the files of the console. Only those that are there now can be asked for; each is read when it is first asked for. */
export function openConsoleFiles(): ConsoleFiles {
  const made = new Map<string, Promise<ConsoleFile | undefined>>()
  let known: Promise<ReadonlyMap<string, string>> | undefined
  let page: Promise<ConsolePage> | undefined
  const read = async (path: string): Promise<ConsoleFile | undefined> => {
    known ??= knownFiles()
    const source = (await known).get(path)
    if (source === undefined) return undefined
    const text = await readFile(source, 'utf8')
    return await fileOf(extname(source), extname(source) === '.ts' ? await withoutTypes(text) : text)
  }
  const file: Read = async (path) => {
    let one = made.get(path)
    if (!one) {
      one = read(path)
      // Names that anybody invents are not kept.
      if (await one) made.set(path, one)
    }
    return await one
  }
  return {
    page: () => {
      page ??= pageOf(file)
      return page
    },
    file,
  }
}

/** Returns the files that may be sent, by their path. */
async function knownFiles(): Promise<ReadonlyMap<string, string>> {
  const resolved = (module: string) => fileURLToPath(import.meta.resolve(module))
  const found = await readdir(folder, { recursive: true, withFileTypes: true })
  const own = found
    .filter(
      (entry) =>
        entry.isFile() && ['.ts', '.css', '.svg'].includes(extname(entry.name)) && !entry.name.endsWith('.d.ts'),
    )
    .map((entry) => join(entry.parentPath, entry.name))
  return new Map([
    ...own.map((file) => [file.slice(folder.length + 1).replaceAll('\\', '/'), file] as const),
    ...Object.values(libraries).map(({ path, module }) => [path, resolved(module)] as const),
    ...Object.entries(otherFiles).map(([path, module]) => [path, resolved(module)] as const),
  ])
}

/** Returns the page with the import map, which browsers want in it: the policy for scripts names its hash. */
async function pageOf(read: Read): Promise<ConsolePage> {
  const map = JSON.stringify({
    imports: Object.fromEntries(Object.entries(libraries).map(([name, { path }]) => [name, `./${path}`])),
  })
  const text = await readFile(join(folder, 'index.html'), 'utf8')
  const modules = new Set<string>()
  // Most modules of the first page are part of every page.
  for (const path of ['main.ts', 'pages/overview.ts']) await addModules(path, read, modules)
  const first = [...modules].map((path) => `<link rel="modulepreload" href="${path}">`)
  const file = await fileOf(
    '.html',
    text.replace('<!-- import map -->', [`<script type="importmap">${map}</script>`, ...first].join('\n    ')),
  )
  return { ...file, scriptHash: `sha256-${hash('sha256', map, 'base64')}` }
}

/** Adds a module and everything that it imports, so that browsers request them in parallel instead of finding one in the other. */
async function addModules(path: string, read: Read, found: Set<string>): Promise<void> {
  const module = found.has(path) ? undefined : await read(path)
  if (!module) return
  found.add(path)
  for (const [, name = ''] of module.bytes.identity.toString().matchAll(imports)) {
    const imported = libraries[name]?.path ?? join(path, '..', name).replaceAll('\\', '/')
    await addModules(imported, read, found)
  }
}

const imports = /(?:\bfrom|^import)\s*["']([^"'\n]+)["']/gm

/**
 * Removes the types from a module. The compiler is that of Node itself, which would warn that its own interface to it is new. It is loaded
 * for the first page only.
 */
async function withoutTypes(text: string): Promise<string> {
  const { default: amaro } = await import('amaro')
  return amaro.transformSync(text, { mode: 'strip-only' }).code
}

async function fileOf(extension: string, text: string): Promise<ConsoleFile> {
  const identity = Buffer.from(text)
  const quality = {
    params: { [constants.BROTLI_PARAM_QUALITY]: 5, [constants.BROTLI_PARAM_SIZE_HINT]: identity.length },
  }
  const [br, gzipped] = await Promise.all([promisify(brotliCompress)(identity, quality), promisify(gzip)(identity)])
  return {
    mediaType: mediaTypes[extension] ?? 'application/octet-stream',
    etag: `"${hash('sha256', identity, 'base64url')}"`,
    bytes: { br, gzip: gzipped, identity },
  }
}
