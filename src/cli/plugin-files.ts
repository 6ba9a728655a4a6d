import { fileURLToPath } from 'node:url'

/** A plugin to begin with. */
export function pluginText(name: string): string {
  return `import { definePlugin, Refusal } from 'inference-router/plugin'

/** What \`options\` below describes. */
type Options = { word: string }

export default definePlugin<Options>({
  description: 'Refuses what says a word, and writes it in capitals where a model does',
  options: {
    properties: { word: { type: 'string', minLength: 1 } },
    required: ['word'],
  },
  setup({ word }, { log }) {
    log.debug({ word }, '${name} is set up')
    return {
      request(request) {
        if (!('chat' in request)) return undefined
        const texts = request.chat.messages.flatMap(({ parts }) => parts).map((part) => ('text' in part ? part.text : ''))
        if (texts.some((text) => text?.includes(word))) throw new Refusal(403, \`We do not speak of \${word}s.\`)
        return undefined
      },
      reply(reply) {
        if (!('chat' in reply)) return undefined
        const parts = reply.chat.parts.map((part) =>
          part.type === 'text' ? { ...part, text: part.text.replaceAll(word, word.toUpperCase()) } : part,
        )
        return { ...reply, chat: { ...reply.chat, parts } }
      },
    }
  },
})
`
}

/** Its test. */
export function testText(name: string): string {
  return `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openPlugin } from 'inference-router/plugin/test'
import plugin from './${name}.ts'

const options = { word: 'plum' }

test('refuses what says the word', async () => {
  await using tested = await openPlugin(plugin, { options })
  const { refusal, forwarded } = await tested.call({ text: 'A plum, please.' })
  assert.equal(refusal?.status, 403)
  assert.equal(forwarded, undefined)
})

test('writes it in capitals where a model does', async () => {
  await using tested = await openPlugin(plugin, { options })
  const { text } = await tested.call({ text: 'What is blue?', answer: 'This plum.' })
  assert.equal(text, 'This PLUM.')
})
`
}

/** Where editors find the types of the router, for a folder that is elsewhere. */
export function tsconfigText(): string {
  const path = (file: string) => fileURLToPath(new URL(`../plugin/${file}`, import.meta.url))
  const paths = {
    'inference-router/plugin': [path('contract.ts')],
    'inference-router/plugin/test': [path('test-kit.ts')],
  }
  const compilerOptions = {
    module: 'nodenext',
    target: 'esnext',
    strict: true,
    noEmit: true,
    erasableSyntaxOnly: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    paths,
  }
  return `${JSON.stringify({ compilerOptions }, null, 2)}\n`
}
