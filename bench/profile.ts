/**
 * Where the CPU of a call goes, by room: a profile of every thread of the router while it is under load.
 * `npm run bench -- profile [way] [scenario] [svg file]`: the number of a way and of a scenario, and where to draw the flame graph.
 */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { flameGraph } from './flame-graph.ts'
import { pin, startMeasured } from './measured.ts'
import { framesOf, selfByFunction, selfByRoom } from './rooms.ts'
import { here, startRouter } from './subjects.ts'
import { chunksPerStream, measure, scenarios, ways } from './ways.ts'

const [wayNumber = '1', scenarioNumber = '1', svgFile] = process.argv.slice(3)
const way = ways[Number(wayNumber) - 1]
const scenario = scenarios[Number(scenarioNumber) - 1]
if (!way || !scenario) {
  for (const [index, { name }] of ways.entries()) console.error(`way ${index + 1}: ${name}`)
  for (const [index, { name }] of scenarios.entries()) console.error(`scenario ${index + 1}: ${name}`)
  process.exit(2)
}
const mostFunctions = 40

const loadCpu = '0'
const routerCpu = '1'
pin(process.pid, loadCpu)
const upstream = await startMeasured('upstream.ts', {}, { cpus: loadCpu })
const router = await startRouter(here, upstream.url)
pinMainThread(router.pid)
await measure(router, way, { ...scenario, calls: 1 })
await router.profile()
const calls = scenario.calls * 2
await measure(router, way, { ...scenario, calls, warm: 0 })
const threads = (await router.profile()).map((thread) => ({ ...thread, frames: framesOf(thread.profile) }))
await router.stop()
await upstream.stop()

const per = calls * (scenario.stream ? chunksPerStream : 1)
const unit = scenario.stream ? 'µs per chunk' : 'µs per call'
console.log(`${way.name}, ${scenario.name}: ${unit}, with what the profiler itself takes`)
for (const { name, profile, frames, cpuUs } of threads) {
  const us = cpuUs / per / frames.total
  const rows = (found: readonly [string, number][]) =>
    Object.fromEntries(found.map(([row, samples]) => [row, { [unit]: (samples * us).toFixed(1) }]))
  console.log(`\n${name}: ${(cpuUs / per).toFixed(1)}`)
  console.table(rows(selfByRoom(frames)))
  console.table(rows(selfByFunction(profile).slice(0, mostFunctions)))
}
if (svgFile !== undefined) {
  const drawn = threads.map(({ name, frames, cpuUs }) => ({ name, frames, us: cpuUs / per }))
  writeFileSync(svgFile, flameGraph(`${way.name}, ${scenario.name}: ${unit}`, drawn))
}
process.exit(0)

/**
 * The main thread has a core without the others: where it wakes them they would run at once, and samples would find it there
 * too often.
 */
function pinMainThread(pid: number | undefined): void {
  pin(pid, loadCpu)
  try {
    execFileSync('taskset', ['--cpu-list', '--pid', routerCpu, `${pid}`], { stdio: 'ignore' })
  } catch {}
}
