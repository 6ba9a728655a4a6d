import { parseArgs } from 'node:util'
import { against } from './against.ts'
import { cellsOf } from './cells.ts'
import { printTable } from './reliability/report.ts'
import { classic, others } from './scenarios.ts'
import { serve } from './serve.ts'
import { strain } from './strain.ts'

const usage = `npm run wall -- --serve [--port 9100] [--host 127.0.0.1] [--time 1] [--write <folder>]
    starts the simulator; --write makes the configuration of a router for it
npm run wall -- <base url of a gateway> [--key <key>] [--models <names>] [--healthy <names>]
    runs the wall against a gateway; in names, {scenario} {targets} {mode} {api} stand for what a cell is
    --simulator <url>   where the simulator is (http://127.0.0.1:9100)
    --at-once <n>       so many cells at once (1)
npm run wall -- --process
    starts this router as a process: changes its files all the time under load, tells it to stop in 200 streams (a minute)
npm run wall -- --reliability [--calls 2000]
    prints how often calls succeed with this router's routing and without it, in virtual time (some minutes)
with cells: --only <text>   those whose name has it; --all: those beside the sixteen classic scenarios as well`

const defaults = {
  port: '9100',
  host: '127.0.0.1',
  time: '1',
  key: process.env.WALL_KEY ?? '',
  models: '{scenario}-{targets}-{mode}-{api}',
  healthy: '{scenario}-{targets}-{mode}-{api}/ok',
  simulator: 'http://127.0.0.1:9100',
  'at-once': '1',
  only: '',
  calls: '2000',
}

const text = (name: keyof typeof defaults) => ({ type: 'string', default: defaults[name] }) as const

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    serve: { type: 'boolean' },
    process: { type: 'boolean' },
    reliability: { type: 'boolean' },
    write: { type: 'string' },
    all: { type: 'boolean' },
    help: { type: 'boolean' },
    port: text('port'),
    host: text('host'),
    time: text('time'),
    key: text('key'),
    models: text('models'),
    healthy: text('healthy'),
    simulator: text('simulator'),
    'at-once': text('at-once'),
    only: text('only'),
    calls: text('calls'),
  },
})

const cells = cellsOf(values.all ? [...classic, ...others] : classic).filter(({ id }) => id.includes(values.only))
const [gateway] = positionals
const print = (line: string) => console.log(line)

try {
  if (values.process) {
    process.exitCode = (await strain(print)) ? 0 : 1
  } else if (values.reliability) {
    await printTable(Number(values.calls), print)
  } else if (values.serve) {
    const { port, time, ...more } = values
    await serve({ ...more, cells, port: Number(port), time: Number(time) }, print)
  } else if (gateway === undefined || values.help) {
    print(usage)
  } else {
    const passed = await against({ ...values, cells, gateway, atOnce: Number(values['at-once']) }, print)
    process.exitCode = passed ? 0 : 1
  }
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 2
}
