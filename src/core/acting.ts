import { isProviderTool, type NeutralRequest } from './request.ts'

/**
 * Whether a request lets its provider act for the caller, or keep something for it: then it is not sent twice where the first
 * one may have been received.
 */
export function letsProviderAct({ tools = [], origin: { body } }: NeutralRequest): boolean {
  if (body.store === true || body.background === true) return true
  if (Array.isArray(body.mcp_servers) && body.mcp_servers.length > 0) return true
  return tools.some((tool) => isProviderTool(tool) && acting.test(tool.kind))
}

/** Tools that a provider runs and that do more than read; those of the client's own machine do not run there. */
const acting = /^(mcp|code_interpreter|code_execution|shell$)/
