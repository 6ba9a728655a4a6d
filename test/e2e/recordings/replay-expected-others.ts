import * as converse from '../../dialects/bedrock-converse-reader.ts'
import * as cohere from '../../dialects/cohere-v2-reader.ts'
import * as ollama from '../../dialects/ollama-reader.ts'
import * as responses from '../../dialects/openai-responses-reader.ts'
import { awsEvent } from '../../helpers/aws-frames.ts'
import type { Recording } from '../../helpers/recordings.ts'
import { type Body, framed, isStreamed, linesAnswer, streamOf, wholeOf } from './replay-answers.ts'
import { emptyReply, finishInChat, type ReplyFacts } from './replay-client.ts'
import type { Expected } from './replay-types.ts'

/** The contents of a recording of Converse. */
export function fromConverse(recording: Recording): Expected {
  const frames = converse.framesOf(recording)
  const answer = frames ? converse.joined(frames) : recording.response.body
  const facts = converse.readIndependently(answer)
  const blocks = facts.texts.map((text) => ({
    text,
    citations: facts.citations.filter((cited) => cited.text === text).map(({ citation }) => citation),
  }))
  const events = converse.framesFrom(answer).map(({ event = '', data }) => awsEvent(event, data))
  return {
    reply: {
      ...emptyReply,
      text: facts.texts.join(''),
      reasoning: facts.reasoning.flatMap(({ text }) => text || []).join('\n\n'),
      calls: facts.calls.map(({ id, name, arguments: input }) => ({ id, name, arguments: input })),
      signatures: facts.reasoning.flatMap(({ seal }) => seal ?? []).sort(),
      citations: placed(blocks),
      searches: facts.searches.map((query) => ({ query, results: undefined })),
      finish: finishInChat(facts.finish),
    },
    id: undefined,
    raw: facts.raw,
    stop: undefined,
    usage: facts.usage,
    total: answer.usage.totalTokens,
    otherWay: frames ? wholeOf(answer) : framed(Buffer.concat(events)),
  }
}

/** A citation without a place speaks of its whole block. */
export function placed(
  blocks: { text: string; citations: { url?: string; title?: string }[] }[],
): ReplyFacts['citations'] {
  let offset = 0
  return blocks.flatMap(({ text, citations }) => {
    const start = offset
    offset += [...text].length
    return citations.flatMap(({ url, title = url }) => (url ? { url, title: title as string, start, end: offset } : []))
  })
}

/** The contents of a recording of Cohere's chat. */
export function fromCohere(recording: Recording): Expected {
  const answer = cohere.assembled(recording)
  const facts = cohere.readIndependently(answer)
  const { billed_units: billed } = answer.usage
  return {
    reply: {
      ...emptyReply,
      text: facts.text,
      reasoning: facts.reasoning,
      calls: facts.calls.map(({ arguments: text, ...call }) => ({ ...call, arguments: JSON.parse(text) })),
      citations: facts.citations.flatMap(({ url, title = '', start = 0, end = 0 }) =>
        url ? { url, title, start, end } : [],
      ),
      logprobs: facts.logprobs.length,
      finish: finishInChat(facts.finish),
    },
    id: facts.id,
    raw: facts.raw,
    stop: undefined,
    usage: facts.usage,
    total: billed && billed.input_tokens + billed.output_tokens,
    otherWay: isStreamed(recording) ? wholeOf(answer) : streamOf(cohere.framesOf(answer).map((data) => ({ data }))),
  }
}

/** The contents of a recording of Ollama's chat. */
export function fromOllama(recording: Recording): Expected {
  const lines = ollama.linesOf(recording)
  const answer = lines ? ollama.joined(lines) : recording.response.body
  const facts = ollama.readIndependently(answer)
  return {
    reply: {
      ...emptyReply,
      text: facts.text,
      reasoning: facts.reasoning,
      calls: facts.calls.map(({ id = 'made up', name, arguments: given }) => ({ id, name, arguments: given })),
      finish: finishInChat(facts.finish),
    },
    id: undefined,
    raw: facts.raw,
    stop: undefined,
    usage: facts.usage,
    total: answer.prompt_eval_count + answer.eval_count,
    otherWay: lines ? wholeOf(answer) : linesAnswer(ollama.linesFor(answer)),
  }
}

/** Recordings whose text deltas differ from the finished item: they were shortened. */
const shortened: { [start: string]: string } = { 'openai-responses/shell-call-stream': 'The command ran successfully.' }

/** The contents of a recording of Responses. */
export function fromResponses(recording: Recording): Expected {
  const response = responseIn(recording)
  const facts = responses.readResponse(response)
  let offset = 0
  const blocks = facts.text.map(({ text, citations }: Body) => {
    const start = offset
    offset += [...text].length
    return citations.flatMap((cited: Body) =>
      cited.url ? { url: cited.url, title: cited.title, start: start + cited.start, end: start + cited.end } : [],
    )
  })
  return {
    reply: {
      ...emptyReply,
      text: facts.text.map(({ text }) => text).join(''),
      reasoning: facts.reasoning.flatMap(({ text, summary }) => text || summary || []).join('\n\n'),
      refusal: facts.refusal.join(''),
      calls: facts.calls.map(({ id, name, arguments: text, custom }) => ({
        id,
        name,
        arguments: custom ? text : JSON.parse(text),
      })),
      // The phase of a message goes back with it, like a signature.
      signatures: [...facts.reasoning.map(({ encrypted }) => encrypted), ...facts.text.map(({ phase }) => phase)]
        .flatMap((seal) => seal ?? [])
        .sort(),
      citations: blocks.flat(),
      searches: facts.searches.map(({ query, action }) => ({ query, results: action })),
      opaque: facts.opaque,
      media: facts.images.map(({ data }) => data),
      logprobs: facts.logprobs.length,
      finish: finishInChat(facts.finish),
    },
    id: facts.id,
    raw: facts.raw,
    stop: undefined,
    usage: facts.usage,
    total: response.usage.total_tokens,
    otherWay: isStreamed(recording) ? wholeOf(response) : streamOf(responses.framesOf(response) as { data: Body }[]),
  }
}

/** The response that a client of the recording saw. */
function responseIn(recording: Recording): Body {
  if (!isStreamed(recording)) return responses.wholeOf(recording)
  const response = responses.streamedOf(recording)
  const [, text] = Object.entries(shortened).find(([start]) => recording.case.startsWith(start)) ?? []
  if (text === undefined) return response
  const output = response.output.map((item: Body) =>
    item.type === 'message' ? { ...item, content: item.content.map((part: Body) => ({ ...part, text })) } : item,
  )
  return { ...response, output }
}
