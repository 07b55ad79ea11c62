/** Notifies of the investigations that a reader follows: when one ends, or waits for people. */
import { useEffect, useState, useSyncExternalStore } from "react";
import { get, pathOf } from "../api/client";
import type { Item } from "../api/types";
import { follows, newsOf, savedFollows, saveFollows, turned, type Followed } from "../logic/follows";
import { investigationLink } from "../logic/route";
import { FOLLOWS } from "../words";

const SECONDS = 10;
const CHANGED = "tarsy-follows-changed";

function save(all: readonly Followed[]): void {
  saveFollows(all);
  dispatchEvent(new Event(CHANGED));
}

function useFollowed(): Followed[] {
  const saved = useSyncExternalStore(
    (changed) => {
      addEventListener(CHANGED, changed);
      addEventListener("storage", changed); // another tab
      return () => {
        removeEventListener(CHANGED, changed);
        removeEventListener("storage", changed);
      };
    },
    () => JSON.stringify(savedFollows()),
  );
  return JSON.parse(saved) as Followed[];
}

/** Follows a run that goes on. Permission is asked on the click, never before. */
export function FollowButton({ item }: { item: Pick<Item, "namespace" | "name" | "state"> }) {
  const all = useFollowed();
  const [blocked, setBlocked] = useState(false);
  if (!("Notification" in globalThis)) return null;
  const on = follows(all, item);
  const turn = async () => {
    const may = on || Notification.permission === "granted" || (await Notification.requestPermission()) === "granted";
    setBlocked(!may);
    if (may) save(turned(savedFollows(), { namespace: item.namespace, name: item.name, state: item.state }, !on));
  };
  return (
    <>
      {blocked && <span className="hint" role="status">{FOLLOWS.blocked}</span>}
      <button type="button" className="quiet" aria-pressed={on} title={FOLLOWS.what} onClick={() => void turn()}>{on ? FOLLOWS.on : FOLLOWS.off}</button>
    </>
  );
}

/** Looks at the followed runs now and then, also while the tab is hidden. */
export function useFollowNotices(): void {
  const all = useFollowed();
  const some = all.length > 0;
  useEffect(() => {
    if (!some) return;
    const look = () => void Promise.all(savedFollows().map(lookAt));
    const timer = setInterval(look, SECONDS * 1000);
    look();
    return () => clearInterval(timer);
  }, [some]);
}

async function lookAt(one: Followed): Promise<void> {
  const link = investigationLink(one.namespace, one.name);
  let item: Item;
  try {
    item = await get<Item>(pathOf(one.namespace, one.name));
  } catch {
    return; // away, or no longer permitted: the views say so
  }
  const news = newsOf(one, item);
  if (item.state === one.state) return;
  const isRead = !document.hidden && location.hash.startsWith(link);
  save(turned(savedFollows(), { ...one, state: item.state }, !news?.over));
  if (!news || isRead || Notification.permission !== "granted") return;
  // The tag replaces the notification of another tab.
  const shown = new Notification(news.title, { body: news.text, tag: item.uid });
  shown.onclick = () => {
    focus();
    location.hash = link.slice(1);
    shown.close();
  };
}
