/** A session's status; more may be added. */
export type Status =
  | 'CREATED' | 'INITIALIZING' | 'READY' | 'CONNECTED' | 'LOADING_TREE' | 'RUNNING' | 'AWAITING_USER'
  | 'COLLECTING_DATA' | 'VERIFYING' | 'COMPLETED' | 'PARTIAL_COMPLETE' | 'ERROR' | 'CANCELLED' | 'TERMINATED';

/** The state of a session as reported to a page: never the applicant's input or collected values. */
export interface News {
  readonly sessionId: string;
  readonly status: Status;
  /** 0 to 100, never decreases. */
  readonly progress: number;
}

export interface Options {
  /** The title of the frame for screen readers. */
  title?: string;
  /** Pixels. By default the frame fits its container: 480 to 900 pixels, nine tenths of the window at most. */
  height?: number;
}

export interface Embed {
  readonly frame: HTMLIFrameElement;
  /** Calls the listener on each change, or once at the end. Returns a function that removes it. */
  on(type: 'status' | 'ended', listener: (news: News) => void): () => void;
  /** Removes the frame. The session continues until it expires or you terminate it. */
  destroy(): void;
}

/**
 * Embeds a session.
 * @param target an element or a selector
 * @param embedUrl as returned by the API
 * @throws TypeError if there is no such element, or `embedUrl` is not a URL
 */
export function mount(target: Element | string, embedUrl: string, options?: Options): Embed;
