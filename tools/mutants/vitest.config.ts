import { resolve } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import base from '../../test/vitest.config.ts'

/** Keeps the order in which the files are named on the command line. */
class GivenOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const places = new Map(process.argv.map((word, index) => [resolve(word), index]))
    const place = ({ moduleId }: TestSpecification) => places.get(moduleId) ?? 0
    return [...files].sort((one, other) => place(one) - place(other))
  }
}

/** The configuration of all tests, for a run that stops at the first failure: one file after the other. */
export default defineConfig({
  test: {
    ...base.test,
    sequence: { sequencer: GivenOrder },
    setupFiles: [base.test?.setupFiles ?? [], 'tools/mutants/record-coverage.ts'].flat(),
    maxWorkers: 1,
    reporters: ['json'],
  },
})
