import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, onTestFinished, test, vi } from 'vitest'
import {
  components,
  formerNamesIn,
  type Log,
  linesWriter,
  logFormat,
  logLevels,
  logOf,
  openLog,
  openRemoteLog,
} from '../../src/observe/log.ts'

// Each log writes its last lines when the process exits.
process.setMaxListeners(30)
const folder = mkdtempSync(join(tmpdir(), 'log-'))
afterAll(() => rmSync(folder, { recursive: true }))

let files = 0
function opened() {
  const path = join(folder, `${files++}`)
  const log = openLog({ file: path })
  return { log, lines: () => linesIn(path) }
}

function linesIn(path: string): string[] {
  const text = readFileSync(path, 'utf8')
  return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line).msg]))
}

test('lines of one moment are written together, and soon', async () => {
  const { log, lines } = opened()
  log.info('one')
  log.info('two')
  log.debug('three')
  expect(lines()).toEqual([])
  await vi.waitFor(() => expect(lines()).toEqual(['one', 'two']))
  log.info('four')
  await vi.waitFor(() => expect(lines()).toEqual(['one', 'two', 'four']))
})

test('a warning or an error is written at once, with all before it', () => {
  for (const level of ['warn', 'error', 'fatal'] as const) {
    const { log, lines } = opened()
    log.info('one')
    log[level]('two')
    expect(lines()).toEqual(['one', 'two'])
  }
})

test('lines wait for a tenth of a second from the first one, also after others were written at once', () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const { log, lines } = opened()
  const expected: string[] = []
  for (let round = 0; round < 3; round++) {
    log.info('waits')
    vi.advanceTimersByTime(60)
    log.warn('at once')
    expected.push('waits', 'at once')
    expect([lines(), vi.getTimerCount()]).toEqual([expected, 0])
    log.info('first')
    vi.advanceTimersByTime(60)
    log.info('second')
    vi.advanceTimersByTime(39)
    expect(lines()).toEqual(expected)
    vi.advanceTimersByTime(1)
    expected.push('first', 'second')
    expect([lines(), vi.getTimerCount()]).toEqual([expected, 0])
  }
})

test('many lines do not wait', () => {
  const { log, lines } = opened()
  for (let line = 0; line < 1_000; line++) log.info('a line of a call')
  expect(lines().length).toBeGreaterThan(500)
})

test('every line has the moment at which it was made', () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const path = join(folder, `${files++}`)
  const log = openLog({ file: path })
  const moments = [0, 7, 999, 1_000, 1_789, 1_700_000_000_123, 999].map((ms) => new Date(ms))
  for (const moment of moments) {
    vi.setSystemTime(moment)
    log.info('x')
  }
  log.warn('x')
  const times = readFileSync(path, 'utf8').trim().split('\n')
  expect(times.map((line) => JSON.parse(line).time)).toEqual(
    [...moments, moments.at(-1)].map((moment) => moment?.toISOString()),
  )
})

test('secrets are not written', () => {
  const { log, lines } = opened()
  log.warn(`the key ir-${'x'.repeat(43)}`)
  expect(lines()).toEqual(['the key [secret]'])
})

test.each([
  ['ends', ''],
  ['exits', 'process.exit(3)'],
  ['crashes', 'setTimeout(() => { throw new Error("x") }, 1)'],
  ['crashes in a promise', 'Promise.reject(new Error("x"))'],
])('a process that %s has written all lines', (_, end) => {
  const path = join(folder, `${files++}`)
  const module = new URL('../../src/observe/log.ts', import.meta.url).href
  const code = `import { openLog } from '${module}'; openLog({ file: ${JSON.stringify(path)} }).info('last'); ${end}`
  try {
    execFileSync(process.execPath, ['--input-type=module', '--eval', code], { stdio: 'ignore' })
  } catch {}
  expect(linesIn(path)).toEqual(['last'])
})

test('components of the log have levels of their own, and their lines name them', () => {
  const path = join(folder, `${files++}`)
  const log = openLog({ file: path, levels: logLevels('warn,plugin=debug') })
  logOf(log, 'call').info('a call')
  logOf(log, 'call').warn('a call that failed')
  logOf(log, 'plugin').debug('a detail')
  log.info('serving')
  log.error('the end')
  const lines = readFileSync(path, 'utf8').trim().split('\n')
  expect(lines.map((line) => [JSON.parse(line).component, JSON.parse(line).msg])).toEqual([
    ['call', 'a call that failed'],
    ['plugin', 'a detail'],
    [undefined, 'the end'],
  ])
})

test('lines name their component under its former name as well, which LOG_LEVEL still takes', () => {
  const path = join(folder, `${files++}`)
  const text = 'silent,books=info, threads=warn,call=info'
  const log = openLog({ file: path, levels: logLevels(text) })
  for (const component of components) logOf(log, component).info('a line')
  logOf(log, 'worker').warn('a line')
  const lines = readFileSync(path, 'utf8').trim().split('\n')
  expect(lines.map((line) => JSON.parse(line)).map(({ component, room }) => [component, room])).toEqual([
    ['call', 'call'],
    ['ledger', 'books'],
    ['worker', 'threads'],
  ])
  expect(logLevels(text)).toEqual(logLevels(text.replace('books', 'ledger').replace('threads', 'worker')))
  expect(formerNamesIn(text)).toEqual([
    'LOG_LEVEL names `books`, which has been renamed to `ledger`',
    'LOG_LEVEL names `threads`, which has been renamed to `worker`',
  ])
  expect([formerNamesIn(undefined), formerNamesIn('warn,ledger=info,worker=debug')]).toEqual([[], []])
})

test('an unknown level or component is an error that names the known ones', () => {
  expect(logLevels(undefined)).toEqual({ level: 'info', components: {} })
  expect(logLevels(' debug , call = silent ')).toEqual({ level: 'debug', components: { call: 'silent' } })
  expect(() => logLevels('loud')).toThrow("LOG_LEVEL has 'loud': a level is one of trace, debug, info")
  expect(() => logLevels('kitchen=info')).toThrow('the components are call, files')
  expect(() => logFormat('xml')).toThrow("LOG_FORMAT is 'xml': write json, pretty or auto.")
})

test('the log is for people unless LOG_FORMAT is json, or auto where there is no terminal', () => {
  expect([undefined, '', 'pretty', 'json', 'auto'].map((text) => logFormat(text, false))).toEqual([
    ...['pretty', 'pretty', 'pretty', 'json', 'json'],
  ])
  expect([undefined, 'auto', 'json'].map((text) => logFormat(text, true))).toEqual(['pretty', 'pretty', 'json'])
})

test('lines for people are one line each, without secrets', () => {
  const path = join(folder, `${files++}`)
  const log = openLog({ file: path, format: 'pretty' })
  logOf(log, 'files').warn({ id: 'c1', status: 502, key: 'Bearer ir-1234567890abcdefghij1234567890' }, 'a change')
  const text = readFileSync(path, 'utf8')
  expect(text).toMatch(
    /^--- \d{4}-\d\d-\d\d ---\n\d\d:\d\d:\d\d WARN a change id=c1 status=502 key="Bearer \[secret\]"\n$/,
  )
  expect(text).not.toContain('abcdefghij')
})

test('lines of another thread are held back there, and written where it asks for that', async () => {
  const written: string[] = []
  const { log, flush } = openRemoteLog(logLevels('info'), (lines) => written.push(lines))
  const messages = () => written.map((lines) => [...lines.matchAll(/"msg":"(.*?)"/g)].map(([, msg]) => msg))
  log.info('one')
  log.info('two')
  expect(messages()).toEqual([])
  await vi.waitFor(() => expect(messages()).toEqual([['one', 'two']]))
  log.info('three')
  log.warn('four')
  log.info('five')
  expect(messages().slice(1)).toEqual([['three', 'four']])
  flush()
  flush()
  expect(messages().slice(2)).toEqual([['five']])
})

test('what another thread has held back is written at once', () => {
  const { log, lines } = opened()
  const far = openRemoteLog(logLevels('info'), linesWriter(log))
  log.info('own')
  far.log.info('of the thread')
  expect(lines()).toEqual([])
  far.flush()
  expect(lines().sort()).toEqual(['of the thread', 'own'])
})

test.each(['json', 'pretty'] as const)(
  'the log of a process writes lines of other threads as its own: %s',
  (format) => {
    const paths = [join(folder, `${files++}`), join(folder, `${files++}`)] as const
    const [own, mixed] = paths.map((file) => openLog({ file, format })) as [Log, Log]
    const far = openRemoteLog(logLevels('info'), linesWriter(mixed)).log
    for (const log of [own, far]) {
      log.info('one')
      log.info({ id: 'c1' }, 'two')
      log.error('three')
    }
    const [expected, found] = paths.map((path) => readFileSync(path, 'utf8').replace(/\d\d:\d\d:\d\d(\.\d+)?/g, 'time'))
    expect(found).toBe(expected)
    expect(found?.split('\n').filter((line) => !line.startsWith('---')).length).toBe(4)
  },
)
