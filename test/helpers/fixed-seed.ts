import { configureGlobal } from 'fast-check'

/** Every run tests the same values, so that a failure is the change's; with `SEED=<number>` others. */
configureGlobal({ seed: Number(process.env.SEED ?? 20_261_121) })
