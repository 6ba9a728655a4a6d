import { writeFileSync } from 'node:fs'
import { Session } from 'node:inspector'
import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'

// Runs in each test file: records which pieces of src/ it executes, in the folder COVERAGE. Only this thread is seen, not the threads and
// processes that tests start.
const folder = process.env.COVERAGE
const shared: { coverage?: Session } = globalThis as { coverage?: Session }
const root = `file://${join(import.meta.dirname, '../..')}/`

/** The executed pieces of a file: where they begin and end, and how often they ran; inner pieces follow outer ones. */
export type Executed = { [file: string]: [start: number, end: number, count: number][] }

if (folder) {
  if (!shared.coverage) {
    shared.coverage = new Session()
    shared.coverage.connect()
    shared.coverage.post('Profiler.enable')
    shared.coverage.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  }
  const { coverage } = shared
  // Reading resets the counters.
  beforeAll(() => void coverage.post('Profiler.takePreciseCoverage'))
  afterAll(() => {
    coverage.post('Profiler.takePreciseCoverage', (error, answer) => {
      if (error) throw error
      const test = expect.getState().testPath?.slice(root.length - 'file://'.length) ?? ''
      const executed: Executed = {}
      for (const { url, functions } of answer.result) {
        const file = url.slice(root.length)
        if (!url.startsWith(`${root}src/`)) continue
        // The code of the module itself runs for the first test file only.
        const isModule = ({ functionName, ranges }: (typeof functions)[number]) =>
          !functionName && ranges[0]?.startOffset === 0
        const pieces = functions.filter((one) => !isModule(one)).flatMap(({ ranges }) => ranges)
        if (pieces.some(({ count }) => count > 0))
          executed[file] = pieces.map(({ startOffset, endOffset, count }) => [startOffset, endOffset, count])
      }
      writeFileSync(join(folder, `${test.replaceAll('/', '+')}.json`), JSON.stringify(executed))
    })
  })
}
