import type { TestProject } from 'vitest/node'
import { allMissingData } from './optional-data.ts'

/** Prints at the end of a run which tests were skipped, and how to run them. */
export default function reportSkipped({ config }: TestProject): () => void {
  return () => {
    if (config.tagsFilter?.includes('!slow')) console.log('Skipped: slow tests (npm run test:slow)')
    for (const reason of allMissingData()) console.log(`Skipped: tests with ${reason}`)
  }
}
