import { expect, test } from 'vitest'
import { messages } from '../../src/api/messages/api.ts'
import { isProviderTool } from '../../src/core/request.ts'

/** The functions that stand for a toolset. */
function functionsOf(tool: { type: string; configs?: object }) {
  const request = messages.read({
    model: 'm',
    max_tokens: 1,
    messages: [{ role: 'user', content: 'Hi' }],
    tools: [tool],
  })
  const [read] = request.tools ?? []
  return read && isProviderTool(read) ? read.functions : undefined
}

test('every member of a toolset is a function of its own name, in the form of the toolset', () => {
  expect(functionsOf({ type: 'computer_toolset_20260801' })).toHaveLength(17)
  const browser = functionsOf({ type: 'browser_toolset_20260801' }) ?? []
  expect(browser).toHaveLength(31)
  expect(new Set(browser.map(({ name }) => name)).size).toBe(31)
  for (const { name, form, parameters = {} } of browser) {
    expect(name).toBe(`browser__${form?.name}`)
    expect(form).toMatchObject({ kind: 'function', namespace: 'browser' })
    const { properties, required = [] } = parameters as { properties: object; required?: string[] }
    expect(Object.keys(properties)).toEqual(expect.arrayContaining(required))
  }
})

test('a member that is switched off is not offered, and unknown toolsets have no functions', () => {
  const configs = { zoom: { enabled: false }, wait: { enabled: true }, key: null }
  const names = functionsOf({ type: 'computer_toolset_20260801', configs })?.map(({ name }) => name)
  expect(names).toHaveLength(16)
  expect(names).not.toContain('computer__zoom')
  expect(functionsOf({ type: 'phone_toolset_20260801' })).toBeUndefined()
})
