/**
 * Audio that passes: when its first byte comes, and how much memory grows while 50 MB pass to a client that reads fast, and to one
 * that reads slowly. The router beside a bare proxy that pipes, in turns, each alone on one core.
 * `npm run bench -- speech [rounds]`: medians of the rounds.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { load, median, percentile } from './load.ts'
import { pin, startMeasured } from './measured.ts'
import { here, startProxy, startRouter } from './subjects.ts'
import type { Subject } from './types.ts'
import { longSpeech } from './ways.ts'

const rounds = Number(process.argv[3] ?? 3)
const [loadCpu, subjectCpu] = ['0', '1']
const short = { model: 'openai/tts-1', input: 'Good morning.', voice: 'alloy' }
const long = { ...short, input: longSpeech }
const megabyte = 1_024 * 1_024

type Figures = { firstMs: number; cpuUs: number; fastMb: number; slowMb: number; longMs: number }

pin(process.pid, loadCpu)
const upstream = await startMeasured('upstream.ts', {}, { cpus: loadCpu })
const found = { proxy: [] as Figures[], router: [] as Figures[] }
for (let round = 1; round <= rounds; round++) {
  found.proxy.push(await measure(await startProxy(upstream.url, { cpus: subjectCpu })))
  found.router.push(await measure(await startRouter(here, upstream.url, { cpus: subjectCpu })))
  console.error(`round ${round} of ${rounds}`)
}
const of = (name: keyof typeof found, figure: keyof Figures) => median(found[name].map((each) => each[figure]))
const row = (name: keyof typeof found) => ({
  'first byte p50 ms': of(name, 'firstMs').toFixed(2),
  'added ms': (of(name, 'firstMs') - of('proxy', 'firstMs')).toFixed(2),
  'first byte ÷ bare': (of(name, 'firstMs') / of('proxy', 'firstMs')).toFixed(2),
  'CPU ms of 50 MB': (of(name, 'cpuUs') / 1_000).toFixed(0),
  'CPU ÷ bare': (of(name, 'cpuUs') / of('proxy', 'cpuUs')).toFixed(2),
  'growth MB, read fast': of(name, 'fastMb').toFixed(1),
  'growth MB, read slowly': of(name, 'slowMb').toFixed(1),
  'growth ÷ 50 MB': (Math.max(of(name, 'fastMb'), of(name, 'slowMb')) / 50).toFixed(2),
})
console.table({ 'bare proxy': row('proxy'), router: row('router') })
await upstream.stop()
process.exit(0)

async function measure(subject: Subject): Promise<Figures> {
  const url = `${subject.url}/v1/audio/speech`
  const headers = { authorization: `Bearer ${subject.key}` }
  await load(url, { calls: 4_000, concurrent: 8, body: short, headers })
  const { firstBytesMs } = await load(url, { calls: 500, concurrent: 1, body: short, headers })
  // What the first long answers leave behind is there for good: buffers of sockets, compiled code.
  await load(url, { calls: 4, concurrent: 1, body: long, headers })
  const before = await subject.used()
  const begun = performance.now()
  const fastMb = await growth(subject, () => load(url, { calls: 1, concurrent: 1, body: long, headers }))
  const longMs = performance.now() - begun
  const { cpuUs } = await subject.used()
  const slowMb = await growth(subject, () => readSlowly(subject))
  await subject.stop()
  return { firstMs: percentile(firstBytesMs, 0.5), cpuUs: cpuUs - before.cpuUs, fastMb, slowMb, longMs }
}

/** How much the resident memory is above its beginning at most, in MB, while something is done. */
async function growth(subject: Subject, work: () => Promise<unknown>): Promise<number> {
  const { rss: before } = await subject.used()
  let most = before
  let goesOn = true
  const working = work().finally(() => {
    goesOn = false
  })
  while (goesOn) {
    most = Math.max(most, (await subject.used()).rss)
    await setTimeout(5)
  }
  await working
  return (Math.max(most, (await subject.used()).rss) - before) / megabyte
}

/** A client that reads 25 MB a second, and nothing in its first half second. */
async function readSlowly({ url, key }: Subject): Promise<void> {
  const body = JSON.stringify(long)
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  const head = ['POST /v1/audio/speech HTTP/1.1', 'host: bench', `authorization: Bearer ${key}`, 'connection: close']
  const rest = ['content-type: application/json', `content-length: ${body.length}`]
  socket.write(`${[...head, ...rest].join('\r\n')}\r\n\r\n${body}`)
  let read = 0
  socket.on('data', (data) => {
    read += data.length
  })
  const closed = once(socket, 'close')
  socket.pause()
  await setTimeout(500)
  const timer = setInterval(() => {
    if (read < allowed()) socket.resume()
    else socket.pause()
  }, 5)
  const begun = performance.now()
  const allowed = () => ((performance.now() - begun) / 1_000) * 25 * megabyte
  await closed
  clearInterval(timer)
  if (read < 800 * 65_536) throw new Error(`only ${read} bytes came`)
}
