import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')

function files(folder: string, ending: string): string[] {
  const names = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
  return names.filter((name) => name.endsWith(ending)).map((name) => join(folder, name))
}

test('no provider is named in the kernel: providers are data', () => {
  const slugs = files('providers', '.yaml')
    .filter((name) => !name.includes('dialects'))
    .map((name) => name.replace(/^.*\/|\.yaml$/g, ''))
  expect(slugs.length).toBeGreaterThan(10)
  const named = new RegExp(`(['"\`])(?:${slugs.join('|')})\\1`)
  const found = files('src', '.ts').flatMap((name) =>
    readFileSync(join(root, name), 'utf8')
      .split('\n')
      .flatMap((line, index) => (named.test(line) ? [`${name}:${index + 1}: ${line.trim()}`] : [])),
  )
  expect(found).toEqual([])
})

test('no file of logic is longer than 300 lines', () => {
  const long = files('src', '.ts').filter((name) => readFileSync(join(root, name), 'utf8').split('\n').length > 301)
  expect(long).toEqual([])
})
