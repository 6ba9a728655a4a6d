import { type ErrorCode, errorBody, RouterError } from '../core/errors.ts'
import type { JsonObject } from '../core/json.ts'

/** Explanation of an error: when it occurs, what the caller or the operator can do, and a message that it may have. */
export type ErrorHelp = { meaning: string; remedy: string; message: string }

/** Explanations of all errors, in the order of the catalogue: `docs/errors.md` and the router's own page of errors have them. */
export const errorHelp: { readonly [code in ErrorCode]: ErrorHelp } = {
  invalid_request: {
    meaning: 'The body, a field, a header or a parameter is malformed, or the provider refused the request as it is.',
    remedy: 'Change what `param` names. Where `provider` is set, the message is that of the provider.',
    message: "'messages' must be an array.",
  },
  previous_response_not_found: {
    meaning:
      'The response that `previous_response_id` names is not stored: it expired, was deleted, or belongs to another organization.',
    remedy: 'Send the whole conversation in `input`, without `previous_response_id`.',
    message: "Previous response with id 'resp_123' not found.",
  },
  context_length: {
    meaning: 'The prompt, or the prompt and the requested output, do not fit into the context window of the model.',
    remedy: 'Shorten the conversation, lower the output limit, or call a model with a larger context window.',
    message: 'Your input exceeds the context window of this model: 210000 tokens > 200000 maximum',
  },
  content_blocked: {
    meaning: 'A content filter of the provider blocked the request or the answer.',
    remedy: 'Change the content. In a policy, `on_blocked: next` lets the next target answer.',
    message: 'The response was filtered due to the content management policy.',
  },
  loss_refused: {
    meaning: 'The provider does not support a field of the request, and the call has `x-router-strict: true`.',
    remedy:
      'Remove the field that `param` names, call another model, or leave the header out: the field is dropped then.',
    message: "The provider does not support 'seed', and x-router-strict is set.",
  },
  missing_key: {
    meaning: 'The request has no API key.',
    remedy:
      'Send `Authorization: Bearer <key>` or `x-api-key: <key>`. The first start prints a key; `key create` makes others.',
    message: 'No API key. Send it as "Authorization: Bearer <key>".',
  },
  budget_exhausted: {
    meaning:
      'The maximum cost of the call does not fit into what is left of a monthly limit of the key or its group, or of the balance of the organization.',
    remedy:
      'Lower `max_tokens`, wait for the next month, or raise the limit. The message has the amounts and says when the limit resets.',
    message: 'The monthly limit of this API key is used up: $5.00 of $5.00. It resets on 2026-12-01.',
  },
  unpriced_model: {
    meaning: 'The model has no known price, and the caller has a limit of money, so that its cost cannot be reserved.',
    remedy: 'Give the model a price in `config.yaml` or in the catalog, or call another model.',
    message: "The model 'vllm/my-model' has no price, and this API key has a limit.",
  },
  invalid_key: {
    meaning: 'The API key is unknown, expired or revoked.',
    remedy: 'Use another key. A key of a provider does not work here: clients send a key of the router.',
    message: 'This API key is expired. Use another key.',
  },
  forbidden: {
    meaning:
      'The key lacks a permission, the model is not in its access list, or the request names something that an account of the operator keeps.',
    remedy: 'Use a key with the permission that the message names, or let its owner change the access list.',
    message: "The model 'openai/gpt-5' is not in the access list of this API key.",
  },
  not_found: {
    meaning: 'There is nothing at this path, or no such object in the organization of the key.',
    remedy: 'Check the base URL of the client: OpenAI clients need `/v1` at its end, Anthropic clients do not.',
    message:
      'There is no POST /chat/completions here. Add /v1 to the base URL of the client: it is /v1/chat/completions.',
  },
  model_not_found: {
    meaning:
      'The model or its provider is unknown, not configured, retired, or not approved for the organization. The provider itself may not know the model any more.',
    remedy:
      'Write `provider/model` as `GET /v1/models` lists it. If the message names a variable, set it and restart the router.',
    message: "The provider 'acme' is not configured: ACME_API_KEY is not set.",
  },
  method_not_allowed: {
    meaning: 'The path exists, but not with this method.',
    remedy: 'Use a method of the header `Allow`.',
    message: '/v1/chat/completions supports POST, not GET.',
  },
  idempotency_conflict: {
    meaning: 'The `Idempotency-Key` was used for another request.',
    remedy: 'Use a new key for a new request, and the same key only to repeat the same one.',
    message: 'This Idempotency-Key was used for another request.',
  },
  too_large: {
    meaning: 'The body is larger than `server.body_limit`, or than the provider accepts.',
    remedy: 'Send less, or raise `server.body_limit` in `config.yaml`.',
    message: 'The body is larger than 50000000 bytes, the limit of this server.',
  },
  unsupported_media_type: {
    meaning: 'The body is not declared as JSON, or has a character set or content encoding that is not supported.',
    remedy: 'Send `Content-Type: application/json`, or `multipart/form-data` where the endpoint takes files.',
    message: 'The body cannot be read: unsupported charset "utf-7"',
  },
  upgrade_required: {
    meaning: 'The client tried to open a WebSocket at the path of a call.',
    remedy: 'Send a POST, and set `stream` for events.',
    message: '/v1/responses accepts no WebSocket: send a POST.',
  },
  rate_limited: {
    meaning:
      'A limit of requests, tokens or concurrent calls is reached, the router is busy, or the provider limits the account of the operator.',
    remedy:
      'Wait for `Retry-After`. `origin` says whose limit it is; add targets to a policy if it is often that of a provider.',
    message: 'Too many requests: this API key may make 60 per minute.',
  },
  quota_exhausted: {
    meaning: 'The account of the operator at the provider has no quota or credit left.',
    remedy: 'Add credit at the provider, or put another target behind it in a policy.',
    message: 'You exceeded your current quota, please check your plan and billing details.',
  },
  client_gone: {
    meaning: 'The client disconnected before the answer was complete. Only the ledger and the log have this error.',
    remedy: 'Raise the timeout of the client, or stream the answer.',
    message: 'The client disconnected.',
  },
  internal: {
    meaning: 'The router failed.',
    remedy: 'Look for the `x-request-id` of the answer in the log, and report what you find there.',
    message: 'The router failed while handling this call.',
  },
  worker_ended: {
    meaning:
      'A thread of the router ended before the rows of its last calls were sent. Only the ledger has this error: one row for each key has what those calls cost, as an estimate.',
    remedy: 'Look for "a worker ended" in the log, which has the reason.',
    message: 'A worker ended before the calls were recorded.',
  },
  plugin_failed: {
    meaning: 'A plugin threw an error or took too long, and its `on_error` refuses the call.',
    remedy: 'Look for the `x-request-id` in the log, and fix the plugin.',
    message: "The plugin 'guard-prompt' failed.",
  },
  plugin_refused: {
    meaning: 'A plugin refused the call or its answer. It may choose another status and a code of its own.',
    remedy: 'The message is that of the plugin.',
    message: 'This prompt contains personal data.',
  },
  provider_refused: {
    meaning: 'The provider refused the credential of the router, or answered with a redirect.',
    remedy:
      'Check the variable of the provider: `doctor --call` tries it. The log has the words of the provider (`detail`).',
    message: 'The provider refused the credential of this router.',
  },
  provider_failed: {
    meaning: 'The provider answered with an error of its own.',
    remedy: 'Try again, or put another target behind it in a policy.',
    message: 'The server had an error while processing your request.',
  },
  provider_overloaded: {
    meaning: 'The provider has too much load. On `/v1/messages` the status is 529.',
    remedy: 'Try again later, or put another target behind it in a policy.',
    message: 'Overloaded',
  },
  provider_unreachable: {
    meaning: 'No connection to the provider could be established.',
    remedy: 'Check the network, the proxy and `base_url`. The log has the cause (`detail`).',
    message: 'The provider could not be reached.',
  },
  provider_timeout: {
    meaning: 'The provider did not answer within a time limit of its manifest, of the policy or of the call.',
    remedy: 'Stream long answers, or raise `timeouts` of the provider in `config.yaml`.',
    message: 'The provider did not begin to answer within 60 seconds.',
  },
  provider_unreadable: {
    meaning: 'The answer of the provider is not what its API promises, or is larger than `answers` allows.',
    remedy: 'Check `base_url` and the manifest of the provider; `check <manifest> --call` shows what it answers.',
    message: 'The provider sent an answer that is not valid gzip data.',
  },
  provider_cut: {
    meaning: 'The connection to the provider broke in the middle of the answer.',
    remedy: 'Try again. In a policy, `on_cut` can hold, continue or restart such answers.',
    message: 'The provider ended its stream in the middle.',
  },
  unavailable: {
    meaning: 'All targets have failed too often recently, or the router cannot use its database.',
    remedy: 'Wait for `Retry-After`. `GET /ready` says what is wrong.',
    message: 'All targets of this call have failed too often. Try again in 5 seconds.',
  },
  model_unavailable: {
    meaning: 'A file that the model needs has an error, so that the model cannot be used.',
    remedy: 'Fix the file that the message names; it is read again when it is saved. `check` finds all errors.',
    message: "The provider 'acme' cannot be used: providers/acme.yaml:3:1 has an error.",
  },
  plugin_unavailable: {
    meaning: 'The file of a plugin that this call needs has an error.',
    remedy: 'Fix the file that the message names; it is read again when it is saved.',
    message: "The plugin 'guard-prompt' cannot be used: plugins/guard-prompt.ts has an error.",
  },
  stopping: {
    meaning: 'The router is stopping and takes no new calls.',
    remedy: 'Send the call again, to another instance if there are several.',
    message: 'The router is stopping. Send the call to another instance.',
  },
}

/** Returns the body of an error as an example for its explanation. */
export function exampleBody(code: ErrorCode, message: string): JsonObject {
  const isOfProvider = code.startsWith('provider_') || ofProviders.has(code)
  return errorBody(new RouterError(code, message, isOfProvider ? { provider: 'acme' } : {}))
}

/** Errors that usually come from a provider, besides those whose code says so. */
const ofProviders: ReadonlySet<ErrorCode> = new Set(['context_length', 'content_blocked', 'quota_exhausted'])
