/** Tells what becomes of an alert of a type, before it is submitted. */
import type { AlertTypes } from "../api/types";
import { SUBMITTED } from "../words";

/**
 * @param types of the namespace, with its defaults.
 * @param type that is written, else the default one.
 * @param handled whether a chain handles it.
 */
export function typeHint(types: AlertTypes, type: string, handled: boolean): string {
  const usual = types.defaultAlertType ? `${types.defaultAlertType} ${SUBMITTED.usual}` : "";
  if (type === "" || handled || types.continue !== null) return [SUBMITTED.selects, usual].filter(Boolean).join(" ");
  return types.defaultChain ? `${SUBMITTED.later} ${types.defaultChain.name}` : SUBMITTED.waits;
}
