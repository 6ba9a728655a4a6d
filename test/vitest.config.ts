import { defineConfig } from 'vitest/config'

/** Tests run on Node's own loader, the one that runs the server: what a test accepts, production accepts. */
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    experimental: { viteModuleRunner: false },
    testTimeout: 20_000,
    hookTimeout: 20_000,
  },
})
