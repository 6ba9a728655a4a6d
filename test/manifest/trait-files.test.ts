import { expect, test } from 'vitest'
import { textFilePlaces } from '../../src/manifest/run/translate.ts'
import { familyRules } from '../../src/manifest/target.ts'
import { formatted, loadAcme } from './files.ts'

const manifest = `slug: acme
name: Acme
base_url: http://127.0.0.1:9/v1
auth: { scheme: none }
dialect: plain
endpoints:
  chat:
    request: { body: '{ "model": model, "files": messages.parts[type = "file"].data }' }
    history: { text_files: all, inline_media: true }
traits:
  - { match: ^reader, history: { text_files: keep, inline_media: { kinds: [image] } } }
`

test('the rules of traits for files hold for their models, over those of the endpoint', () => {
  const { loaded, problems } = loadAcme(manifest)
  if (!loaded) throw new Error(formatted(problems).join())
  const { provider } = loaded
  const rulesFor = (model: string) => [
    textFilePlaces({ provider, model }),
    familyRules(provider, { model }).history.inline_media,
  ]
  expect(rulesFor('reader-1')).toEqual([undefined, { kinds: ['image'] }])
  expect(rulesFor('other')).toEqual(['all', true])
})
