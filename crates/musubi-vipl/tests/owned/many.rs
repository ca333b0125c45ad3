//! Many VIs at once: on one completion queue, and awaited together in one task.

use musubi_vipl::owned::process::{CompletionQueue, Nic, Vi};
use musubi_vipl::owned::{CompletionKind, Connected, ViFailure, ViOptions, Work};

use super::{Way, open, soon};

const VIS: usize = 16;
const QUESTIONS: u32 = 50;

/// Answers all questions of as many VIs, from one queue.
async fn serve(nic: &Nic, queue: &mut CompletionQueue, mut vis: Vec<Vi<Connected>>) -> Vec<Vi<Connected>> {
    let mut left = vis.len() * QUESTIONS as usize * 2;
    while left > 0 {
        let came = queue.completed().await.unwrap().done().unwrap();
        let vi = vis.iter_mut().find(|vi| vi.number() == came.vi).unwrap();
        left -= 1;
        if came.kind == CompletionKind::Sent {
            continue;
        }
        let question = u32::from_le_bytes(came.region[..4].try_into().unwrap());
        vi.receives().post(came.region).unwrap();
        let mut answer = nic.region(4).unwrap();
        answer.copy_from_slice(&(question * 2 + 1).to_le_bytes());
        vi.sends().post(Work::send(answer)).unwrap();
    }
    vis
}

async fn ask(nic: &Nic, vi: &mut Vi<Connected>, number: u32) {
    for turn in 0..QUESTIONS {
        let question = number * 1000 + turn;
        vi.receives().post(nic.region(4).unwrap()).unwrap();
        vi.sends().post(Work::send(nic.register(question.to_le_bytes()).unwrap())).unwrap();
        let (sends, receives) = vi.queues();
        let answer = receives.completed().await.unwrap().done().unwrap();
        assert_eq!(answer.region[..], (question * 2 + 1).to_le_bytes());
        sends.completed().await.unwrap().done().unwrap();
    }
}

#[test]
fn one_queue_serves_many_vis_that_are_awaited_together() {
    for way in Way::ALL {
        let (left, right) = open(way);
        let mut queue = right.completion_queue().unwrap();
        let mut listener = right.listen(b"questions").unwrap();
        let to = left.address("right", b"questions").unwrap();
        let served = std::thread::scope(|scope| {
            let server = scope.spawn(|| {
                pollster::block_on(async {
                    let mut vis = Vec::new();
                    while vis.len() < VIS {
                        let options = ViOptions::default();
                        let mut vi = right.vi_telling(options, Some(&queue), Some(&queue)).unwrap();
                        vi.receives().post(right.region(4).unwrap()).unwrap();
                        let caller = listener.caller().await.unwrap();
                        vis.push(caller.accept(vi).await.unwrap());
                    }
                    assert_eq!(vis[0].receives().done().unwrap_err(), ViFailure::Invalid, "it tells the queue");
                    serve(&right, &mut queue, vis).await
                })
            });
            pollster::block_on(async {
                let connecting = (0..VIS).map(|_| left.vi(ViOptions::default()).unwrap().connect(&to)).collect();
                let mut vis: Vec<Vi<Connected>> =
                    super::all(connecting).await.into_iter().map(Result::unwrap).collect();
                super::all(vis.iter_mut().zip(0..).map(|(vi, number)| ask(&left, vi, number)).collect()).await;
                drop(vis);
            });
            server.join().unwrap()
        });
        // Receives that were posted last come back by the queue, as the connections have ended.
        for _ in 0..VIS {
            let back = queue.completed().wait(soon()).unwrap();
            assert_eq!((back.kind, back.outcome), (CompletionKind::Received, Err(ViFailure::Ended)), "{way:?}");
        }
        assert!(queue.done().unwrap().is_none());
        drop(queue);
        drop(served);
    }
}

#[test]
fn a_queue_of_another_nic_is_refused_and_a_dropped_vi_leaves_nothing_in_one() {
    let (left, right) = open(Way::SharedMemory);
    let mut queue = left.completion_queue().unwrap();
    assert_eq!(right.vi_telling(ViOptions::default(), Some(&queue), None).unwrap_err(), ViFailure::Invalid);
    let apart = left.apart().unwrap();
    assert_eq!(apart.vi_telling(ViOptions::default(), None, Some(&queue)).unwrap_err(), ViFailure::Invalid);
    let (sends, receives) = {
        let vi = left.vi_telling(ViOptions::default(), None, Some(&queue)).unwrap();
        let to = left.address("left", b"self").unwrap();
        let mut listener = left.listen(b"self").unwrap();
        let there = left.vi(ViOptions::default()).unwrap();
        let connecting = vi.connect(&to);
        let accepting = listener.caller().wait(soon()).unwrap().accept(there);
        let mut here = connecting.wait(soon()).unwrap();
        let mut there = accepting.wait(soon()).unwrap();
        for _ in 0..2 {
            here.receives().post(left.region(2).unwrap()).unwrap();
            there.sends().post(Work::send(left.region(2).unwrap())).unwrap();
        }
        assert_eq!(queue.completed().wait(soon()).unwrap().done().unwrap().bytes, 2);
        here.into_queues()
    };
    drop(sends);
    drop(receives);
    assert!(queue.done().unwrap().is_none());
}
