import { expect, test } from 'vitest'
import { type Recording, recordings, recordingsMissing } from '../helpers/recordings.ts'
import { answerJson, byCharacter, speechWorld } from './speech-world.ts'

// Recorded exchanges: the client's request is what was sent to the provider, its recorded answer is what the client gets.

/** Mistral's own name of the voice, which the recorded client did not know. */
const renamed = { mistral: (body: { voice?: string }) => ({ ...without(body, 'voice'), voice_id: body.voice }) }

function without<T extends object>(object: T, name: keyof T): Partial<T> {
  const { [name]: _, ...others } = object
  return others as Partial<T>
}

function audioIn({ response }: Recording): Buffer {
  return Buffer.from(response.body_base64 ?? response.body.audio_data, 'base64')
}

test.skipIf(recordingsMissing).each(recordings('openai-speech').map((one) => [one.case, one] as const))(
  '%s',
  async (_, recording) => {
    const { provider: slug, request, response: recorded } = recording
    const asked = request?.body ?? {}
    const { model, ...fields } = asked
    const world = await speechWorld(
      (_request, response) => {
        if (recorded.body !== undefined) return answerJson(response, recorded.body)
        response.writeHead(recorded.status, recorded.headers).end(audioIn(recording))
      },
      { slug, models: { [model]: byCharacter } },
    )
    const response = await world.speak({ model: `${slug}/${model}`, ...fields })
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('application/octet-stream')
    expect(response.headers.get('x-router-dropped')).toBe(null)
    expect(response.headers.get('x-router-audio-format')).toBe(null)
    expect(Buffer.from(await response.arrayBuffer()).equals(audioIn(recording))).toBe(true)
    const [sent] = world.provider.received
    expect(sent?.path).toBe(request?.path)
    expect(sent?.body).toEqual(slug === 'mistral' ? renamed.mistral(asked) : asked)
    expect(await world.rows()).toMatchObject([{ outcome: 'complete', usage: { characters: [...fields.input].length } }])
    await world.end()
  },
)
