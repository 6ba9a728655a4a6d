import { testRouter } from './router.ts'

// Starts and stops a router of two threads: the next starts find compiled code, and what was found out about files.
const router = await testRouter({ threads: 2 })
await router.call('/v1/models')
await router.end()
process.exit()
