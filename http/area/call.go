package area

import (
	"context"
	"net/http"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/http/answer"
	"lieudit/http/input"
	"lieudit/schemas/grant"
)

// endpoint reads a request that is allowed and does what it asks for.
type endpoint func(*http.Request, call) (reply, error)

// reply is a status and a body, or an answer that is written as it is read.
type reply struct {
	status int
	body   any
	stream func(context.Context, http.ResponseWriter) error // fails before anything is written, or not at all
}

func (r reply) send(w http.ResponseWriter, req *http.Request) error {
	if r.stream != nil {
		return r.stream(req.Context(), w)
	}
	return answer.JSON(w, r.status, r.body)
}

func ok(body any) (reply, error)      { return reply{status: http.StatusOK, body: body}, nil }
func created(body any) (reply, error) { return reply{status: http.StatusCreated, body: body}, nil }

// call is who asks, and the variables of the path.
type call struct {
	pass grant.Pass
	vars map[string]string
}

func (c call) account() string { return c.vars["id"] }

// intent is who wants something done to an account, and why.
func (c call) intent(reason string) commands.Intent {
	in := commands.Intent{Actor: "token:" + c.pass.Token, Reason: reason}
	if c.pass.Role == grant.Agency {
		in.OnBehalfOf = c.account()
	}
	return in
}

// shows waits until the read models show what a command on an account, or its refusal, left on the log up to a position.
func (a *area) shows(ctx context.Context, at eventstore.Position, err error) error {
	if at > 0 {
		a.Wait(ctx, at)
	}
	return err
}

// showsToken is shows for a command on a token.
func (a *area) showsToken(ctx context.Context, at eventstore.Position, err error) error {
	if at > 0 {
		a.WaitTokens(ctx, at)
	}
	return err
}

// asks is an endpoint that reads its request from the query.
func asks[Q any](do func(*http.Request, call, Q) (reply, error)) endpoint {
	return reads(input.For[Q]().Query, do)
}

// takes is an endpoint that reads its request from the body.
func takes[B any](do func(*http.Request, call, B) (reply, error)) endpoint {
	return reads(input.For[B]().Body, do)
}

func reads[T any](read func(*http.Request) (T, error), do func(*http.Request, call, T) (reply, error)) endpoint {
	return func(r *http.Request, c call) (reply, error) {
		in, err := read(r)
		if err != nil {
			return reply{}, err
		}
		ctx, cancel := context.WithTimeout(r.Context(), maxWork)
		defer cancel()
		return do(r.WithContext(ctx), c, in)
	}
}
