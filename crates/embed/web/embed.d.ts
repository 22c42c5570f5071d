/** A session's status; more may be added. */
export type Status =
  | 'CREATED' | 'INITIALIZING' | 'READY' | 'CONNECTED' | 'LOADING_TREE' | 'RUNNING' | 'AWAITING_USER'
  | 'COLLECTING_DATA' | 'VERIFYING' | 'COMPLETED' | 'PARTIAL_COMPLETE' | 'ERROR' | 'CANCELLED' | 'TERMINATED';

/** A step of the applicant; more may be added. */
export type Step = 'starting' | 'sign_in' | 'second_factor' | 'reading' | 'consent' | 'attesting' | 'done';

/** What the applicant is asked for, as in `nextAction.kind` of the API; more may be added. */
export type Kind = 'login' | 'otp' | 'push' | 'security_question' | 'account_picker' | 'captcha' | 'consent' | 'custom_url' | 'retry';

/** The state of a session as reported to a page: never the applicant's input or collected values. */
export interface News {
  readonly sessionId: string;
  readonly status: Status;
  /** 0 to 100, never decreases. */
  readonly progress: number;
}

/** The events, each with what its listener receives. */
export interface Events {
  /** The page is connected to the session. */
  open: News;
  /** Status or progress changed. */
  status: News;
  /** The applicant is at another step. */
  step: News & { readonly step: Step };
  /**
   * The applicant is asked to do something. With `retry`, an attempt failed with the `code`, and the
   * applicant can start another one; otherwise there is no `code`.
   */
  awaiting: News & { readonly kind: Kind; readonly code?: string };
  /** The applicant starts another attempt, after one that failed with this code. */
  retry: News & { readonly code: string };
  /**
   * The applicant left: `APPLICANT_CANCELLED`, `CONSENT_DECLINED`, `RETURNED` (by the link to your
   * `returnUrl`) or `CLOSED` (the dialog of `open`; the session goes on).
   */
  exit: News & { readonly code: string };
  /** The session failed: a code of the API's `error-codes`, or `LINK_INVALID`. */
  error: News & { readonly code: string };
  /** The session has ended, once. The result comes by webhook or poll. */
  ended: News & { readonly code: string | null };
}

export interface Options {
  /** The title of the frame for screen readers. */
  title?: string;
  /** Pixels. By default the frame fills the window below its top: 480 to 1000 pixels. */
  height?: number;
}

export interface ModalOptions {
  /** The title of the dialog and of the frame for screen readers. */
  title?: string;
  /** The name of the button that closes the dialog. */
  closeLabel?: string;
}

export interface Embed {
  readonly frame: HTMLIFrameElement;
  /** Calls the listener on each event of a type. Returns a function that removes it. */
  on<Type extends keyof Events>(type: Type, listener: (news: Events[Type]) => void): () => void;
  /** Removes the frame and the dialog. The session goes on as if the applicant had left the page. */
  destroy(): void;
}

/**
 * Embeds a session in an element.
 * @param target an element or a selector
 * @param embedUrl as returned by the API
 * @throws TypeError if there is no such element, or `embedUrl` is not a URL
 */
export function mount(target: Element | string, embedUrl: string, options?: Options): Embed;

/**
 * Shows a session in a modal dialog over the page.
 * @param embedUrl as returned by the API
 * @throws TypeError if `embedUrl` is not a URL
 */
export function open(embedUrl: string, options?: ModalOptions): Embed;
