import fc from 'fast-check'
import { expect, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import type { ClientApi } from '../../src/api/client-api.ts'
import { messages } from '../../src/api/messages/api.ts'
import { responses } from '../../src/api/responses/api.ts'
import type { RouterError } from '../../src/core/errors.ts'
import type { Json, JsonObject } from '../../src/core/json.ts'

type Said = { role: string; content: string }

/** A body of each API, and the same message in a form that is read member by member. */
const apis: {
  [name: string]: { api: ClientApi; roles: string[]; body(turns: Json[]): JsonObject; longer(said: Said): Json }
} = {
  chat: {
    api: chat,
    roles: ['user', 'assistant', 'system', 'developer'],
    body: (turns) => ({ model: 'm', messages: turns }),
    longer: (said) => ({ ...said, name: null }),
  },
  messages: {
    api: messages,
    roles: ['user', 'assistant', 'system'],
    body: (turns) => ({ model: 'm', max_tokens: 9, messages: turns }),
    longer: ({ role, content }) => ({ role, content: [{ type: 'text', text: content }] }),
  },
  responses: {
    api: responses,
    roles: ['user', 'assistant', 'system', 'developer'],
    body: (turns) => ({ model: 'm', input: turns }),
    longer: ({ role, content }) => ({ role, content: [{ type: 'input_text', text: content }] }),
  },
}

const read = (api: ClientApi, body: JsonObject) => {
  const { origin: _, ...request } = api.read(body)
  return request
}

test.each(Object.entries(apis))(
  'a text alone means the same in %s as one told at length',
  (_name, { api, roles, body, longer }) => {
    const said = fc.record({ role: fc.constantFrom(...roles), content: fc.constantFrom('', 'Hi', 'Grüße 𝄞') })
    fc.assert(
      fc.property(fc.array(said, { minLength: 1, maxLength: 6 }), (turns) => {
        expect(read(api, body(turns))).toEqual(read(api, body(turns.map(longer))))
      }),
    )
  },
)

test.each(Object.entries(apis))(
  '%s refuses a text with a role that there is not, and names it',
  (name, { api, body }) => {
    for (const role of ['constructor', '__proto__', 'USER', '', 7, null, ['user']] as Json[]) {
      const list = name === 'responses' ? 'input' : 'messages'
      expect(() =>
        api.read(
          body([
            { role: 'user', content: 'Hi' },
            { role, content: 'Hi' },
          ]),
        ),
      ).toThrow(expect.objectContaining({ code: 'invalid_request', param: `${list}[1].role` }) as RouterError)
    }
  },
)
