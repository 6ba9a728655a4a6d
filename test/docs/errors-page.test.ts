import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { catalogue, docUrl, type ErrorCode, explanationsAt } from '../../src/core/errors.ts'
import { errorHelp } from '../../src/http/error-help.ts'
import { errorsPage } from '../../tools/site/errors-page.ts'
import { type TestRouter, testRouter } from '../helpers/router.ts'

const root = join(import.meta.dirname, '../..')
const codes = Object.keys(catalogue) as ErrorCode[]

describe('docs/errors.md', () => {
  const page = readFileSync(join(root, 'docs/errors.md'), 'utf8')

  test('is as it is generated', () => {
    expect(page, 'npm run docs:errors').toBe(errorsPage())
  })

  test('has every code with its status, a meaning, a remedy and an example', () => {
    expect(Object.keys(errorHelp)).toEqual(codes)
    for (const code of codes) {
      const section = page.split(`\n## \`${code}\`\n`)[1]?.split('\n## ')[0] ?? ''
      const { meaning, remedy, message } = errorHelp[code]
      expect(section).toContain(`Status ${catalogue[code].status}. ${meaning}`)
      expect(section).toContain(remedy)
      const { error } = JSON.parse(/```json\n([\s\S]*?)```/.exec(section)?.[1] ?? '{}')
      expect(error).toMatchObject({ message, type: catalogue[code].type, doc_url: `/docs/errors.html#${code}` })
    }
  })

  test('has remedies of at least a sentence', () => {
    const poor = codes.filter((code) => Object.values(errorHelp[code]).some((text) => !/^\S.{8,}$/s.test(text)))
    expect(poor.filter((code) => code !== 'provider_overloaded')).toEqual([])
  })
})

describe('the address of an explanation', () => {
  test.each([
    [undefined, '/docs/errors.html'],
    ['', '/docs/errors.html'],
    ['https://docs.example.com/router', 'https://docs.example.com/router/errors.html'],
    ['https://docs.example.com/router//', 'https://docs.example.com/router/errors.html'],
  ])('with the variable %s is %s', (site, expected) => {
    expect(explanationsAt(site)).toBe(expected)
  })

  test('ends with the code of the router', () => {
    expect(docUrl('invalid_key')).toBe('/docs/errors.html#invalid_key')
  })
})

describe('an error over HTTP', () => {
  let router: TestRouter
  beforeAll(async () => {
    router = await testRouter({ env: {} })
  })
  afterAll(() => router.end())

  const messages = [{ role: 'user', content: 'Hello' }]

  test.each([
    ['/v1/chat/completions', { model: 'nobody/nothing', messages }, 'model_not_found'],
    ['/v1/responses', { model: 'nobody/nothing', input: 'Hello' }, 'model_not_found'],
    ['/v1/messages', { model: 'nobody/nothing', max_tokens: 5, messages }, 'model_not_found'],
    ['/v1/embeddings', { model: 'nobody/nothing', input: 'Hello' }, 'model_not_found'],
    ['/v1/chat/completions', { model: 'demo/echo', messages: 5 }, 'invalid_request'],
    ['/v1/nowhere', {}, 'not_found'],
  ])('of %s leads to its section on the page of the router: %s', async (path, body, code) => {
    const response = await router.call(path, body)
    const { error } = (await response.json()) as { error: { doc_url: string } }
    const { pathname, hash } = new URL(error.doc_url, router.url)
    expect(hash).toBe(`#${code}`)
    const page = await fetch(`${router.url}${pathname}`)
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(await page.text()).toContain(`<section id="${code}">`)
  })

  test('is explained by a page without scripts, and with no text of its own as markup', async () => {
    const text = await (await fetch(`${router.url}/docs/errors.html`)).text()
    expect(text).not.toMatch(/<script|<link|<img|https?:\/\//)
    expect([...text.matchAll(/<section id="(\w+)">/g)].map(([, code]) => code)).toEqual(codes)
    expect(text).toContain('Bearer &lt;key>')
  })
})
