package znode

import "fmt"

// Error is a result code of the ZooKeeper protocol, and an error itself:
// compare with errors.Is(err, znode.ErrNoNode). The numbers are
// KeeperException.Code's; clients refuse unknown numbers, so none may be added.
type Error int32

// The codes, in the order of the protocol. OK is not an error and must never be
// returned as one: use Err to convert.
const (
	OK                        Error = 0
	ErrSystem                 Error = -1
	ErrRuntimeInconsistency   Error = -2
	ErrDataInconsistency      Error = -3
	ErrConnectionLoss         Error = -4
	ErrMarshalling            Error = -5
	ErrUnimplemented          Error = -6
	ErrOperationTimeout       Error = -7
	ErrBadArguments           Error = -8
	ErrNewConfigNoQuorum      Error = -13
	ErrReconfigInProgress     Error = -14
	ErrAPI                    Error = -100
	ErrNoNode                 Error = -101
	ErrNoAuth                 Error = -102
	ErrBadVersion             Error = -103
	ErrNoChildrenForEphemeral Error = -108
	ErrNodeExists             Error = -110
	ErrNotEmpty               Error = -111
	ErrSessionExpired         Error = -112
	ErrInvalidCallback        Error = -113
	ErrInvalidACL             Error = -114
	ErrAuthFailed             Error = -115
	ErrSessionMoved           Error = -118
	ErrNotReadOnly            Error = -119
	ErrEphemeralOnLocal       Error = -120
	ErrNoWatcher              Error = -121
	ErrRequestTimeout         Error = -122
	ErrReconfigDisabled       Error = -123
	ErrSessionClosedNeedsSASL Error = -124
	ErrQuotaExceeded          Error = -125
	ErrThrottled              Error = -127
)

var errorText = map[Error][2]string{
	OK:                        {"OK", "no error"},
	ErrSystem:                 {"SYSTEMERROR", "system error: a limit of the servers stands in the way"},
	ErrRuntimeInconsistency:   {"RUNTIMEINCONSISTENCY", "not tried: an earlier operation of the multi failed"},
	ErrDataInconsistency:      {"DATAINCONSISTENCY", "data inconsistency"},
	ErrConnectionLoss:         {"CONNECTIONLOSS", "connection lost; whether the operation happened is unknown"},
	ErrMarshalling:            {"MARSHALLINGERROR", "the request could not be decoded"},
	ErrUnimplemented:          {"UNIMPLEMENTED", "operation not supported by this server"},
	ErrOperationTimeout:       {"OPERATIONTIMEOUT", "operation timed out"},
	ErrBadArguments:           {"BADARGUMENTS", "bad arguments"},
	ErrNewConfigNoQuorum:      {"NEWCONFIGNOQUORUM", "no quorum of the new configuration is connected"},
	ErrReconfigInProgress:     {"RECONFIGINPROGRESS", "another reconfiguration is in progress"},
	ErrAPI:                    {"APIERROR", "API error"},
	ErrNoNode:                 {"NONODE", "znode does not exist"},
	ErrNoAuth:                 {"NOAUTH", "not permitted by the ACL"},
	ErrBadVersion:             {"BADVERSION", "version does not match"},
	ErrNoChildrenForEphemeral: {"NOCHILDRENFOREPHEMERALS", "an ephemeral znode cannot have children"},
	ErrNodeExists:             {"NODEEXISTS", "znode already exists"},
	ErrNotEmpty:               {"NOTEMPTY", "znode has children"},
	ErrSessionExpired:         {"SESSIONEXPIRED", "session expired"},
	ErrInvalidCallback:        {"INVALIDCALLBACK", "invalid callback"},
	ErrInvalidACL:             {"INVALIDACL", "invalid ACL"},
	ErrAuthFailed:             {"AUTHFAILED", "authentication failed"},
	ErrSessionMoved:           {"SESSIONMOVED", "session moved to another server"},
	ErrNotReadOnly:            {"NOTREADONLY", "write sent to a read-only server"},
	ErrEphemeralOnLocal:       {"EPHEMERALONLOCALSESSION", "ephemeral znode on a local session"},
	ErrNoWatcher:              {"NOWATCHER", "no such watcher"},
	ErrRequestTimeout:         {"REQUESTTIMEOUT", "request timed out"},
	ErrReconfigDisabled:       {"RECONFIGDISABLED", "reconfig is disabled"},
	ErrSessionClosedNeedsSASL: {"SESSIONCLOSEDREQUIRESASLAUTH", "an identity of enforce.auth.schemes is needed"},
	ErrQuotaExceeded:          {"QUOTAEXCEEDED", "quota exceeded"},
	ErrThrottled:              {"THROTTLEDOP", "operation throttled"},
}

// Name is ZooKeeper's name of the code, such as NONODE.
func (e Error) Name() string {
	if t, ok := errorText[e]; ok {
		return t[0]
	}
	return fmt.Sprintf("UNKNOWN(%d)", int32(e))
}

// Error returns the meaning of the code.
func (e Error) Error() string {
	if t, ok := errorText[e]; ok {
		return t[1]
	}
	return fmt.Sprintf("unknown error code %d", int32(e))
}

// Err is nil for OK and the code itself otherwise.
func (e Error) Err() error {
	if e == OK {
		return nil
	}
	return e
}
