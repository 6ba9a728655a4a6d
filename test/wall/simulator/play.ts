import type { ServerResponse } from 'node:http'
import type { Plan, Step } from './plan.ts'

/** So many texts are sent together at most: gateways get a stream in several pieces. */
const textsAtOnce = 8

type Options = { time: number; onCut(): void }

/** Does to a response what a plan says. `time` is the factor of all waits. Resolves when the response has ended or was left. */
export async function play(plan: Exclude<Plan, 'reset'>, response: ServerResponse, options: Options): Promise<void> {
  const stage = { ...options, response, left: new Promise<void>((resolve) => response.once('close', resolve)) }
  for (const step of plan.before ?? []) await playStep(step, stage)
  if (response.destroyed) return
  response.writeHead(plan.status, plan.headers)
  const texts = grouped(plan.steps)
  const [only] = texts
  if (texts.length === 1 && typeof only === 'string') {
    response.end(only)
    return
  }
  response.flushHeaders()
  for (const step of texts) {
    await playStep(step, stage)
    if (response.destroyed) return
  }
  response.end()
}

type Stage = Options & { response: ServerResponse; left: Promise<void> }

async function playStep(step: Step, { response, left, time, onCut }: Stage): Promise<void> {
  if (response.destroyed) return
  if (step === 'silent') await left
  else if (step === 'cut') {
    onCut()
    response.destroy()
  } else if (typeof step === 'object') await Promise.race([left, pause(step.wait * time)])
  else await Promise.race([left, written(response, step)])
}

/** Resolves when the system has taken the text: what is cut afterwards does not take it back. */
async function written(response: ServerResponse, text: string): Promise<void> {
  await new Promise<void>((resolve) => response.write(text, () => setImmediate(resolve)))
}

/** Neighbouring texts joined, a few each. */
function grouped(steps: readonly Step[]): Step[] {
  const groups: Step[] = []
  let texts: string[] = []
  const close = () => {
    if (texts.length > 0) groups.push(texts.join(''))
    texts = []
  }
  for (const step of steps) {
    if (typeof step !== 'string' || step === 'cut' || step === 'silent') {
      close()
      groups.push(step)
    } else {
      texts.push(step)
      if (texts.length === textsAtOnce) close()
    }
  }
  close()
  return groups
}

async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms))
}
