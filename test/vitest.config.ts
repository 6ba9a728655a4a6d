import { defineConfig } from 'vitest/config'

/** Tests run on Node's own loader, the one that runs the server: what a test accepts, production accepts. */
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    experimental: { viteModuleRunner: false },
    // Files share a worker's modules: loading them once is most of what a small test costs.
    isolate: false,
    maxWorkers: 2,
    testTimeout: 20_000,
    hookTimeout: 20_000,
  },
})
