// What the page says, in English.

const words = {
  title: 'Verify your account',
  moment: 'One moment …',
  starting: 'Starting a secure browser …',
  full: 'All secure browsers are in use. Yours starts as soon as one is free.',
  cancel: 'Cancel',
  close: 'Close window',
  start: 'Start',
  startText: 'You will sign in on a secure page. Nothing is shared before you agree.',
  share: 'Share',
  keep: 'Do not share',
  asks: '{host} asks',
  leave: 'Leave this page? What you entered may be lost.',
  ok: 'OK',
  no: 'Cancel',
  answer: 'Your answer',
  lost: 'Connection lost',
  again: 'Trying again …',
  replaced: 'Continued elsewhere',
  replacedText: 'This session was opened in another place.',
  here: 'Continue here',
  badLink: 'This link does not work',
  badLinkText: 'It may be incomplete. Please ask for a new one.',
  upload: 'Files cannot be sent from here.',
  download: 'Files cannot be saved from here.',
  elsewhere: 'That page is not part of this sign-in.',
  done: 'Done',
  partial: 'Done, with gaps',
  failed: 'It did not work',
  cancelled: 'Cancelled',
  ended: 'Ended',
  certifying: 'Your data is being certified. You can close this page.',
  doneText: 'Your data was shared. You can close this page.',
  endedText: 'This verification was ended. You can close this page.',
  minute: 'One minute is left for this step.',
  phone: 'Continue on your phone',
  phoneText: 'Scan this code with your phone\'s camera. This page is left as it is.',
  screen: 'The platform\'s page. Press F6 to leave it.',
  site: 'The site you are on',
  back: 'Back',
  /** @type {Record<string, string>} by error code; English comes with the outcome */
  codes: {},
};

/** @typedef {typeof words} Words */

export default words;
