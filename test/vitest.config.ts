import { defineConfig } from 'vitest/config'
import LongestFirst from './helpers/longest-first.ts'
import { timeFactor } from './helpers/time.ts'

/** Tests run on Node's own loader, the one that runs the server: code that a test accepts is accepted in production. */
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    experimental: { viteModuleRunner: false },
    // Files share a worker's modules: loading them once is most of what a small test costs.
    isolate: false,
    // Two for each of two cores: many files spend seconds waiting for a process, a lock, a kill or a time limit.
    maxWorkers: 4,
    // Many small objects live for one test only: a young generation that is large from the start saves most of the collections. One
    // helper thread of V8 for each worker: with four, they wait for each other on the same cores.
    execArgv: [
      '--conditions=inference-router-source',
      '--max-semi-space-size=64',
      '--min-semi-space-size=64',
      '--v8-pool-size=1',
    ],
    tags: [
      { name: 'slow', description: 'Takes long: a grid, a property with many runs, processes that start and end.' },
    ],
    sequence: { sequencer: LongestFirst },
    setupFiles: ['test/helpers/fixed-seed.ts'],
    globalSetup: ['test/helpers/temporary-folder.ts', 'test/helpers/report-skipped.ts'],
    // These bound hanging tests; tests of speed have limits of their own.
    testTimeout: 120_000 * timeFactor,
    hookTimeout: 60_000 * timeFactor,
    expect: { poll: { timeout: 15_000 * timeFactor } },
  },
})
