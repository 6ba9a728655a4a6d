import type { Profiler } from 'node:inspector'
import type { Measured } from './measured.ts'

/** A measured server, the key that it accepts, and the time from its start to its first answered call. */
export type Subject = Measured & { key: string; startMs: number }

/** A profile of one thread, and the CPU that the thread took meanwhile, in microseconds. */
export type ThreadProfile = { name: string; profile: Profiler.Profile; cpuUs: number }
