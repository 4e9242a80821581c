package projector

var NextScrubPause = nextScrubPause
