import { resolveSources } from '../runtime/resolve-sources.ts'

// Before anything else is found: the thread has nothing of what the main thread has loaded.
resolveSources()
await import('./worker-thread.ts')
