import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openPlugin } from 'inference-router/plugin/test'
import plugin from './require-metadata.ts'

const options = { names: ['team', 'ticket'] }
const metadata = { team: 'search', ticket: 'S-17' }

test('a call without the metadata is refused, and the message names what is missing', async () => {
  await using tested = await openPlugin(plugin, { options })
  const { refusal, asked } = await tested.call({ facts: { metadata: { team: 'search' } } })
  assert.equal(refusal?.status, 400)
  assert.equal(refusal?.message, 'Set metadata.ticket.')
  assert.equal(asked, undefined)
})

test('a call with the metadata passes, and its answer says to whom it is attributed', async () => {
  await using tested = await openPlugin(plugin, { options })
  const { text, headers } = await tested.call({ facts: { metadata }, answer: 'Well.' })
  assert.equal(text, 'Well.')
  assert.deepEqual(headers, { 'x-attributed-to': 'search/S-17' })
})

test('only a call above the threshold is logged, with its metadata', async () => {
  await using tested = await openPlugin(plugin, { options: { ...options, warn_usd: 0.5 } })
  const costing = (usd: number) => ({
    facts: { metadata },
    record: { cost: { nanoUsd: usd * 1e9, parts: {}, priceVersion: '' } },
  })
  await tested.call(costing(0.5))
  assert.equal(tested.logged.length, 0)
  await tested.call(costing(0.51))
  const [line] = tested.logged
  assert.equal(line?.level, 'warn')
  assert.deepEqual(
    { team: line?.facts.team, ticket: line?.facts.ticket, usd: line?.facts.usd },
    { ...metadata, usd: 0.51 },
  )
})

test('options without names are refused when the plugin is set up', async () => {
  await assert.rejects(openPlugin(plugin, { options: {} }), /names/)
})
