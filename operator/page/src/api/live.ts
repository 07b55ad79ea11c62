/**
 * Maintains one WebSocket for all channels of the web UI. It reconnects by itself and resumes each channel.
 *
 * Decision: a channel remembers the id of its last message, so no change is lost while the server restarts; repeated
 * messages do no harm, because every message contains the complete object.
 */
import type { ServerMessage } from "./types";

export type Listener = {
  onMessages(messages: ServerMessage[]): void;
  /** The server refused the channel, or ended it. */
  onRefused?(reason: string, message: string): void;
};

type Channel = { listener: Listener; after: string | null; told: ServerMessage[] };
export type Standing = "connecting" | "open" | "lost";

const FIRST_DELAY = 400;
const LONGEST_DELAY = 10_000;
const SILENCE = 60_000;
const PING = 25_000;
const IDLE = 3_000;
/** Milliseconds between two deliveries of messages: often enough for words that are read as they come. */
const PACE = 50;

export function delayOf(attempt: number, random: () => number = Math.random): number {
  const most = Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** Math.min(attempt, 10));
  return most * (0.5 + random() / 2);
}

export class Live {
  private socket: WebSocket | null = null;
  private channels = new Map<string, Channel>();
  private attempt = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private pinging: ReturnType<typeof setInterval> | undefined;
  private frame = 0;
  private heard = 0;
  private toldAt = 0;
  private watchers = new Set<(standing: Standing) => void>();
  standing: Standing = "connecting";

  constructor(private readonly url: string) {}

  /** Follows a channel; returns a function that ends the subscription. */
  follow(name: string, listener: Listener, after: string | null = null): () => void {
    this.channels.set(name, { listener, after, told: [] });
    if (this.socket === null && this.timer === undefined) this.connect();
    else if (this.standing === "open") this.subscribe(name);
    return () => {
      this.channels.delete(name);
      this.send({ action: "unsubscribe", channel: name });
      // The next view may reuse the connection.
      setTimeout(() => this.channels.size === 0 && this.close(), IDLE);
    };
  }

  /** Requests the messages of a channel after an id again. */
  catchUp(channel: string, after: string): void {
    const found = this.channels.get(channel);
    if (found) found.after = after;
    this.send({ action: "catchup", channel, after });
  }

  watch(watcher: (standing: Standing) => void): () => void {
    this.watchers.add(watcher);
    watcher(this.standing);
    return () => this.watchers.delete(watcher);
  }

  close(): void {
    clearTimeout(this.timer);
    clearInterval(this.pinging);
    this.timer = undefined;
    const socket = this.socket;
    this.socket = null;
    socket?.close();
    this.become("connecting");
  }

  private become(standing: Standing): void {
    this.standing = standing;
    for (const watcher of this.watchers) watcher(standing);
  }

  private connect(): void {
    this.timer = undefined;
    const socket = new WebSocket(this.url, "v1.tarsy.dev");
    this.socket = socket;
    socket.onopen = () => {
      if (this.socket !== socket) return;
      this.attempt = 0;
      this.heard = Date.now();
      this.become("open");
      for (const name of this.channels.keys()) this.subscribe(name);
      this.pinging = setInterval(() => this.ping(), PING);
    };
    socket.onmessage = (message) => {
      if (this.socket === socket) this.hear(JSON.parse(String(message.data)) as ServerMessage);
    };
    socket.onclose = () => {
      if (this.socket !== socket) return;
      clearInterval(this.pinging);
      this.socket = null;
      if (this.channels.size === 0) return;
      this.become("lost");
      this.timer = setTimeout(() => this.connect(), delayOf(this.attempt++));
    };
  }

  private ping(): void {
    if (Date.now() - this.heard > SILENCE) this.socket?.close();
    else this.send({ action: "ping" });
  }

  private subscribe(name: string): void {
    const channel = this.channels.get(name);
    if (!channel) return;
    const after = channel.after === null ? {} : { after: channel.after };
    this.send({ action: "subscribe", channel: name, ...after });
  }

  private send(action: object): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(action));
  }

  private hear(message: ServerMessage): void {
    this.heard = Date.now();
    if (!("channel" in message) || !message.channel) return;
    const channel = this.channels.get(message.channel);
    if (!channel) return;
    if (message.type === "error") {
      // Conflict means "already subscribed"; any other error ends the channel.
      if (message.reason !== "Conflict") channel.listener.onRefused?.(message.reason, message.message);
      return;
    }
    if ("id" in message && message.id !== null && message.type !== "overflow") channel.after = message.id;
    channel.told.push(message);
    // Delivers the messages of some frames together, the first at once. A hidden tab draws no frames, so it uses a timer.
    if (!this.frame) {
      this.frame = 1;
      const tell = () => this.tell();
      const early = PACE - (performance.now() - this.toldAt);
      if (document.hidden) setTimeout(tell, 2 * PACE);
      else if (early > 0) setTimeout(() => (document.hidden ? tell() : requestAnimationFrame(tell)), early);
      else requestAnimationFrame(tell);
    }
  }

  private tell(): void {
    this.frame = 0;
    this.toldAt = performance.now();
    for (const channel of this.channels.values()) {
      if (channel.told.length === 0) continue;
      const told = channel.told;
      channel.told = [];
      channel.listener.onMessages(told);
    }
  }
}

export function openLive(): Live {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  return new Live(`${scheme}://${location.host}/api/v1/ws`);
}
