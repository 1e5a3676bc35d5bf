/* Who owns a conversation, and how its answer gets into a chat once: claims, fences, lease and send, with the names of the code.

   One message, one turn, one part, and as many incarnations of the gateway as NODES says. They die at any moment (CRASHES), lose their lock while
   they live (LOSSES: the server ends a pulse that stays silent), and lose a platform's answer (LOST). What is checked is at the end: `Watch`
   looks after every step, `Last` when nothing more can happen.

   In the code: `Claim`, `Left.take_up` (claim), `Facts.owned` (FENCED), `Close.decide` (close), `Ledger.keep_begun` (begun),
   `Records.may_send`/`Ownership.lease_ok` (lease), `ChatPort.create` (create), `ChatPort.find` (look_up), `settled` (sent).

   ABILITY: 0 none, 1 look_up, 2 keyed (adapters.contract.chat.Ability). A mistake is planted by -D NO_FENCE, NO_LEASE, NO_BEGUN, SPLIT_CLOSE or
   NO_LOOK_UP; then something must be found. With -D PAUSES a process may be stopped between its look at the lease and its call. */

#ifndef NODES
#define NODES 3
#endif
#ifndef ABILITY
#define ABILITY 1
#endif
#ifndef CRASHES
#define CRASHES 2
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef LOST
#define LOST 1
#endif

#ifdef PAUSES
#define BROKEN_LEASE false
#else
#define BROKEN_LEASE (unleased > 0)
#endif

mtype = { NOTHING, NEW, TAKEN, OPEN, CLOSED, WANTED, SENDING, SENT };

mtype message = NEW, turn = NOTHING, part = NOTHING;
byte owner = 0, epoch = 0;        /* of the session; 0: nobody's */
byte gateway = 0;                 /* who holds the lock of the gateway */
bool lock[NODES + 1];             /* the pulse's lock: others take this node for alive */
bool alive[NODES + 1];
byte exits = 0;                   /* TurnEnded in the journal */
byte shown = 0;                   /* messages that people see */
byte labelled = 0;                /* those of them that say that they may be there twice */
byte stale = 0;                   /* writes of somebody who was not the owner any more */
byte unleased = 0;                /* calls by somebody whose lock was gone */
byte crashes = 0, losses = 0, lost_answers = 0;

#ifdef NO_FENCE
#define FENCED(what) atomic { alive[me] -> if :: owner != me || epoch != mine -> stale++ :: else fi; what }
#else
#define FENCED(what) atomic { alive[me] -> if :: owner != me || epoch != mine -> goto fenced :: else fi; what }
#endif

proctype Node(byte me) {
  byte mine = 0;
  bool repeated = false;

  atomic { gateway == 0 -> gateway = me; lock[me] = true; alive[me] = true }
  /* take_up: only of a node that is dead */
  atomic { alive[me] && (owner == 0 || owner == me || !lock[owner]) -> owner = me; epoch++; mine = epoch }

work:
  if
  :: !alive[me] -> goto over
  :: alive[me] && message == NEW -> FENCED(message = TAKEN; turn = OPEN); goto work
  :: alive[me] && turn == OPEN ->
#ifdef SPLIT_CLOSE
     FENCED(turn = CLOSED; exits++);
     FENCED(part = WANTED); goto work
#else
     FENCED(if :: turn == OPEN -> turn = CLOSED; exits++; part = WANTED :: else fi); goto work
#endif
  :: alive[me] && part == WANTED -> repeated = false; goto begin
  :: alive[me] && part == SENDING -> repeated = true; goto look_up
  :: alive[me] && part == SENT -> goto over
  :: alive[me] && !lock[me] -> goto over  /* ownership.lost: it begins anew, as another node */
  fi;

look_up:
#if ABILITY > 0
#ifndef NO_LOOK_UP
  if
  :: alive[me] && shown > 0 -> goto sent
  :: alive[me] && shown == 0 -> skip
  :: !alive[me] -> goto over
  fi;
#endif
#endif

begin:
#ifndef NO_BEGUN
  if
  :: alive[me] -> FENCED(part = SENDING)
  :: !alive[me] -> goto over
  fi;
#endif

#ifdef NO_LEASE
  skip;
#else
#ifdef PAUSES
  if :: alive[me] && lock[me] -> skip :: !alive[me] || !lock[me] -> goto over fi;
#endif
#endif
  /* the look at the lease and the call are one step, unless the process is stopped just there */
  atomic {
    if
    :: !alive[me] -> goto over
#ifndef NO_LEASE
#ifndef PAUSES
    :: alive[me] && !lock[me] -> goto over
#endif
#endif
    :: else ->
       if :: !lock[me] -> unleased++ :: else fi;
       if
       :: ABILITY == 2 && shown > 0 -> skip      /* known by its key: nothing new */
       :: else ->
          shown++;
          if :: repeated && ABILITY == 0 -> labelled++ :: else fi
       fi
    fi
  }
  if
  :: alive[me] && lost_answers < LOST -> lost_answers++; goto work   /* part is SENDING: Fate.UNKNOWN */
  :: alive[me] -> skip
  :: !alive[me] -> goto over
  fi;

sent:
  if
  :: alive[me] -> FENCED(part = SENT); goto work
  :: !alive[me] -> goto over
  fi;

fenced:
over:
  atomic {
    lock[me] = false;
    alive[me] = false;
    if :: gateway == me -> gateway = 0 :: else fi
  }
}

/* Deaths, and locks that the server takes away. */
active proctype Chaos() {
  byte one;
  do
  :: crashes < CRASHES ->
     select(one : 1 .. NODES);
     atomic { if :: alive[one] -> alive[one] = false; lock[one] = false; crashes++; if :: gateway == one -> gateway = 0 :: else fi :: else fi }
  :: losses < LOSSES ->
     select(one : 1 .. NODES);
     atomic { if :: alive[one] && lock[one] -> lock[one] = false; losses++; if :: gateway == one -> gateway = 0 :: else fi :: else fi }
  :: break
  od
}

/* After every step. */
active proctype Watch() {
  atomic {
    (exits > 1 || stale > 0 || shown > labelled + 1 || BROKEN_LEASE) -> assert(false)
  }
}

/* When nothing more can happen: a gateway that was there in the end has shown the answer. */
active proctype Last() {
  timeout;
  if
  :: crashes + losses < NODES -> assert(part == SENT && exits == 1 && shown > 0)
  :: else -> skip
  fi
}

init {
  byte n = 1;
  atomic { do :: n <= NODES -> run Node(n); n++ :: n > NODES -> break od }
}
