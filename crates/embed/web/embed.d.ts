/** A session's status; more may be added. */
export type Status =
  | 'CREATED' | 'INITIALIZING' | 'READY' | 'CONNECTED' | 'LOADING_TREE' | 'RUNNING' | 'AWAITING_USER'
  | 'COLLECTING_DATA' | 'VERIFYING' | 'COMPLETED' | 'PARTIAL_COMPLETE' | 'ERROR' | 'CANCELLED' | 'TERMINATED';

/** What a page learns of a session: never what the applicant wrote, nor what was collected. */
export interface News {
  readonly sessionId: string;
  readonly status: Status;
  /** 0 to 100, never falls. */
  readonly progress: number;
}

export interface Options {
  /** What screen readers call the frame. */
  title?: string;
  /** Pixels. As a rule the frame fits its place: 480 to 900 pixels, nine tenths of the window at most. */
  height?: number;
}

export interface Embed {
  readonly frame: HTMLIFrameElement;
  /** Tells of each change, or of the end once. Answers a function that stops it. */
  on(type: 'status' | 'ended', listener: (news: News) => void): () => void;
  /** Takes the frame away. The session goes on until its time is over, or you end it. */
  destroy(): void;
}

/**
 * Shows a session.
 * @param target an element or a selector
 * @param embedUrl as the API gave it
 * @throws TypeError where there is no such element, or `embedUrl` is none
 */
export function mount(target: Element | string, embedUrl: string, options?: Options): Embed;
