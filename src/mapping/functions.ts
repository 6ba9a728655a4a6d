import { dataUrl, mediaFormat, mediaType, nearestRatio, parseDataUrl } from './functions/media.ts'
import { nearestEffort, reasoningBudget, reasoningEffort } from './functions/reasoning-effort.ts'
import {
  base64Text,
  callInstruction,
  codePointOffset,
  digest,
  jsonArguments,
  jsonInstruction,
  parseJson,
  toJson,
  withoutNulls,
} from './functions/text.ts'
import { narrowSchema, toolSchema } from './functions/tool-schema.ts'
import { distinctNames, joinTexts, joinTurns, partEvent, plainText } from './functions/turns.ts'

/**
 * A function that mappings may call. `takes` names the members of its argument that its result carries over: a call
 * mentions them. What it only looks at is not among them.
 */
export type RouterFunction = { signature: string; run: (...args: never[]) => unknown; takes?: readonly string[] }

/**
 * Functions that a mapping may call beyond JSONata's own library: pure, synchronous, plain JSON in and out. A signature is JSONata's: `s`
 * text, `n` number, `a` array, `o` object, `x` anything; `-` stands for the context when it is left out, `?` is optional.
 */
export const functions: Readonly<Record<string, RouterFunction>> = {
  /** `$parseJson("[1]")` is `[1]`; missing when the text is not JSON. JSONata's own `$eval` would run it as code. */
  parseJson: { signature: '<s-:x>', run: parseJson },
  /** `$toJson({"a": 1})` is `'{"a":1}'`, digits untouched (JSONata's `$string` rounds to 15 digits). */
  toJson: { signature: '<x-:s>', run: toJson },
  /** `$jsonArguments('{"a":1}')` is `{"a": 1}`; `""`, `"null"` and nothing are `{}`; `"ls"` is `{"input": "ls"}`. */
  jsonArguments: { signature: '<x-:o>', run: jsonArguments },
  /** `$withoutNulls({"a": null, "b": [{"c": null}]})` is `{"b": [{}]}`. */
  withoutNulls: { signature: '<x-:x>', run: withoutNulls },
  /** `$digest("a", 4)` is `"ca97"`: the first digits of the SHA-256, all 64 without a length. */
  digest: { signature: '<s-n?:s>', run: digest },
  /** `$base64Text("w6k=")` is `"é"` (JSONata's `$base64decode` reads Latin-1). */
  base64Text: { signature: '<s-:s>', run: base64Text },
  /** `$codePointOffset("é!", 2)` is `1`: an offset in UTF-8 bytes as one in code points. */
  codePointOffset: { signature: '<s-n:n>', run: codePointOffset },
  /** `$dataUrl({"data": "aQ==", "media_type": "image/png"})` is `"data:image/png;base64,aQ=="`; of a part with an address the address. */
  dataUrl: { signature: '<x-s?:s>', run: dataUrl, takes: ['data', 'media_type', 'url'] },
  /** `$dataUrlType("data:image/png;base64,aQ==")` is `"image/png"`; missing for any other text. */
  dataUrlType: { signature: '<s-:s>', run: (url?: string) => parseDataUrl(url)?.type },
  /** `$nearestRatio("1536x1024", ["1:1", "3:2"])` is `"3:2"`; missing for a text that is not a size in pixels. */
  nearestRatio: { signature: '<sa:s>', run: nearestRatio },
  /** `$dataUrlBody("data:image/png;base64,aQ==")` is `"aQ=="`; missing for any other text. */
  dataUrlBody: { signature: '<s-:s>', run: (url?: string) => parseDataUrl(url)?.body },
  /** `$mediaType({"filename": "a.PDF"})` is `"application/pdf"`; `$mediaType({"media_type": "image/jpg; q=1"})` is `"image/jpeg"`. */
  mediaType: { signature: '<x-:s>', run: mediaType, takes: ['media_type', 'filename'] },
  /** `$mediaFormat({"media_type": "audio/mpeg"})` is `"mp3"`; `$mediaFormat("text/plain")` is `"txt"`. */
  mediaFormat: { signature: '<x-:s>', run: mediaFormat, takes: ['media_type', 'filename'] },
  /** `$narrowSchema({"type": "integer", "minimum": 0})` is `{"schema": {"type": "integer", "description": "(minimum: 0)"}, "narrowed": true, "open": false}`. */
  narrowSchema: { signature: '<x-o?:o>', run: narrowSchema },
  /** `$toolSchema({"name": "f", "strict": true}, false)` is `{"schema": {"properties": {}, "type": "object"}, "dropped": "tools.strict", "lost": "tools.strict"}`. */
  toolSchema: { signature: '<x-b?:o>', run: toolSchema },
  /** `$partEvent({"type": "reasoning", "text": "Hm."})` is `{"reasoning": {"text": "Hm."}}`. */
  partEvent: { signature: '<x-:o>', run: partEvent },
  /** `$plainText([{"type": "text", "text": "Hi"}])` is `"Hi"`; other lists stay as they are. */
  plainText: { signature: '<x-:x>', run: plainText },
  /** `$joinTexts(["a", "b", {"c": 1}, "d"])` is `["ab", {"c": 1}, "d"]`. */
  joinTexts: { signature: '<x-:x>', run: joinTexts },
  /** `$reasoningEffort({"budget": 4096})` is `"medium"`; `$reasoningEffort({"budget": 2000}, {"low": 2048})` is `"low"`. */
  reasoningEffort: { signature: '<x-o?:s>', run: reasoningEffort },
  /** `$reasoningBudget({"effort": "high"}, 1000)` is `800`; `$reasoningBudget({"budget": 300}, 1000)` is `300`. */
  reasoningBudget: { signature: '<x-n?:n>', run: reasoningBudget },
  /** `$nearestEffort("medium", ["low", "high"])` is `"high"`; `$nearestEffort("xhigh", ["high", "max"])` is `"high"`. */
  nearestEffort: { signature: '<s-a?:s>', run: nearestEffort },
  /** `$jsonInstruction()` is `"Answer with one JSON value and nothing else: no explanation, no code fences."`; a schema follows it. */
  jsonInstruction: { signature: '<x?:s>', run: jsonInstruction },
  /** `$callInstruction("f")` is `"Answer with a call of the tool f."`; `$callInstruction()` is `"Answer with a call of one of the tools."`. */
  callInstruction: { signature: '<s?:s>', run: callInstruction },
  /** `$joinTurns([{"role": "user", "content": [1]}, {"role": "user", "content": [2]}])` is `[{"role": "user", "content": [1, 2]}]`. */
  joinTurns: { signature: '<a:a>', run: joinTurns },
  /** `$distinctNames([{"name": "a"}, {"name": "A"}], ["name"])` is `[{"name": "a"}, {"name": "A [2]"}]`. */
  distinctNames: { signature: '<xa?:x>', run: distinctNames },
}
