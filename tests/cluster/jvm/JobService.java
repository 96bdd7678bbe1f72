import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.beam.model.fnexecution.v1.BeamFnApi;
import org.apache.beam.model.jobmanagement.v1.JobApi;
import org.apache.beam.model.pipeline.v1.Endpoints.ApiServiceDescriptor;
import org.apache.beam.model.pipeline.v1.RunnerApi;
import org.apache.beam.runners.core.metrics.MetricsContainerStepMap;
import org.apache.beam.runners.fnexecution.artifact.ArtifactRetrievalService;
import org.apache.beam.runners.fnexecution.control.BundleProgressHandler;
import org.apache.beam.runners.fnexecution.control.ControlClientPool;
import org.apache.beam.runners.fnexecution.control.DefaultJobBundleFactory;
import org.apache.beam.runners.fnexecution.control.FnApiControlClientPoolService;
import org.apache.beam.runners.fnexecution.control.OutputReceiverFactory;
import org.apache.beam.runners.fnexecution.control.ProcessBundleDescriptors;
import org.apache.beam.runners.fnexecution.control.RemoteBundle;
import org.apache.beam.runners.fnexecution.control.StageBundleFactory;
import org.apache.beam.runners.fnexecution.environment.EnvironmentFactory;
import org.apache.beam.runners.fnexecution.environment.ExternalEnvironmentFactory;
import org.apache.beam.runners.fnexecution.environment.ProcessEnvironmentFactory;
import org.apache.beam.runners.fnexecution.logging.GrpcLoggingService;
import org.apache.beam.runners.fnexecution.provisioning.JobInfo;
import org.apache.beam.runners.fnexecution.provisioning.StaticGrpcProvisionService;
import org.apache.beam.runners.fnexecution.state.StateRequestHandler;
import org.apache.beam.runners.fnexecution.state.StateRequestHandlers;
import org.apache.beam.runners.fnexecution.translation.BatchSideInputHandlerFactory;
import org.apache.beam.runners.fnexecution.translation.PipelineTranslatorUtils;
import org.apache.beam.runners.jobsubmission.JobInvocation;
import org.apache.beam.runners.jobsubmission.JobInvoker;
import org.apache.beam.runners.jobsubmission.JobServerDriver;
import org.apache.beam.runners.jobsubmission.PortablePipelineResult;
import org.apache.beam.runners.jobsubmission.PortablePipelineRunner;
import org.apache.beam.sdk.coders.Coder;
import org.apache.beam.sdk.coders.KvCoder;
import org.apache.beam.sdk.fn.IdGenerator;
import org.apache.beam.sdk.fn.data.FnDataReceiver;
import org.apache.beam.sdk.fn.server.GrpcContextHeaderAccessorProvider;
import org.apache.beam.sdk.fn.server.GrpcFnServer;
import org.apache.beam.sdk.fn.server.ServerFactory;
import org.apache.beam.sdk.metrics.MetricResults;
import org.apache.beam.sdk.options.Default;
import org.apache.beam.sdk.options.Description;
import org.apache.beam.sdk.options.PipelineOptions;
import org.apache.beam.sdk.options.PipelineOptionsRegistrar;
import org.apache.beam.sdk.options.PortablePipelineOptions;
import org.apache.beam.sdk.util.WindowedValue;
import org.apache.beam.sdk.util.construction.BeamUrns;
import org.apache.beam.sdk.util.construction.NativeTransforms;
import org.apache.beam.sdk.util.construction.PTransformTranslation;
import org.apache.beam.sdk.util.construction.PipelineOptionsTranslation;
import org.apache.beam.sdk.util.construction.graph.ExecutableStage;
import org.apache.beam.sdk.util.construction.graph.GreedyPipelineFuser;
import org.apache.beam.sdk.util.construction.graph.PipelineNode.PTransformNode;
import org.apache.beam.sdk.util.construction.graph.ProtoOverrides;
import org.apache.beam.sdk.util.construction.graph.QueryablePipeline;
import org.apache.beam.sdk.util.construction.graph.SplittableParDoExpander;
import org.apache.beam.sdk.util.construction.graph.TrivialNativeTransformExpander;
import org.apache.beam.sdk.values.KV;
import org.apache.beam.vendor.grpc.v1p69p0.com.google.protobuf.Struct;
import org.apache.beam.vendor.grpc.v1p69p0.io.grpc.BindableService;
import org.apache.beam.vendor.grpc.v1p69p0.io.grpc.Server;
import org.apache.beam.vendor.grpc.v1p69p0.io.grpc.ServerInterceptors;
import org.apache.beam.vendor.grpc.v1p69p0.io.grpc.netty.NettyServerBuilder;
import org.apache.beam.vendor.guava.v32_1_2_jre.com.google.common.util.concurrent.ListeningExecutorService;
import org.joda.time.Duration;

/**
 * Beam's JVM code of the portable runners with an engine for tests below it.
 *
 * <p>Real are what the job servers of Flink and Spark are built on: job service, staging of artifacts, fusion, the
 * environments of workers, bundles, side inputs, metrics. Only the engine is a small one: it keeps every collection in
 * memory and hands it on in a random order, cut into bundles that run at the same time. It does what clusters do and
 * local engines do not: it tries a bundle again in other workers, and it runs each bundle several times at once. All
 * of its servers listen on the loopback interface only, which those of Beam's own job servers do not.
 *
 * <p>Command line: that of the job servers of Flink and Spark, of which only the ports mean something here.
 */
public final class JobService extends JobServerDriver {

  /** Options of a job that only this job service knows. */
  public interface EngineOptions extends PortablePipelineOptions {
    @Description("Bundles that run at the same time, and how many a collection is cut into.")
    @Default.Integer(3)
    int getEngineBundles();

    void setEngineBundles(int bundles);

    @Description("How often a bundle that failed is tried again.")
    @Default.Integer(0)
    int getNumberOfExecutionRetries();

    void setNumberOfExecutionRetries(int retries);

    @Description("How often each bundle runs, at the same time; the outputs of one of them count.")
    @Default.Integer(1)
    int getEngineCopies();

    void setEngineCopies(int copies);
  }

  /** Tells Beam of the options. */
  public static final class OptionsOfEngine implements PipelineOptionsRegistrar {
    @Override
    public Iterable<Class<? extends PipelineOptions>> getPipelineOptions() {
      return Collections.singletonList(EngineOptions.class);
    }
  }

  /** A Reshuffle is the engine's own, as it is Flink's and Spark's. */
  public static final class NativeReshuffle implements NativeTransforms.IsNativeTransform {
    @Override
    public boolean test(RunnerApi.PTransform transform) {
      return PTransformTranslation.RESHUFFLE_URN.equals(PTransformTranslation.urnForTransformOrNull(transform));
    }
  }

  private JobService(ServerConfiguration configuration) {
    super(configuration, new LoopbackServers(), new LoopbackServers(), Invoker::new);
  }

  public static void main(String[] arguments) {
    Map<String, Integer> ports = new HashMap<>();
    List<String> words = new ArrayList<>();
    for (String argument : arguments) Collections.addAll(words, argument.split("=", 2));
    for (int place = 0; place + 1 < words.size(); place++) {
      if (words.get(place).endsWith("-port")) ports.put(words.get(place), Integer.valueOf(words.get(place + 1)));
    }
    ServerConfiguration configuration = new ServerConfiguration();
    configuration.setPort(ports.getOrDefault("--job-port", 0));
    configuration.setArtifactPort(ports.getOrDefault("--artifact-port", 0));
    configuration.setExpansionPort(ports.getOrDefault("--expansion-port", 0));
    new JobService(configuration).run();
  }

  // -------------------------------------------------------------------------------------------------------------------
  // Servers and environments

  private static final class LoopbackServers extends ServerFactory {
    @Override
    public Server allocateAddressAndCreate(List<BindableService> services, ApiServiceDescriptor.Builder address)
        throws IOException {
      Server server = serve(services, 0);
      address.setUrl("localhost:" + server.getPort());
      return server;
    }

    @Override
    public Server create(List<BindableService> services, ApiServiceDescriptor address) throws IOException {
      String url = address.getUrl();
      return serve(services, Integer.parseInt(url.substring(url.lastIndexOf(':') + 1)));
    }

    private static Server serve(List<BindableService> services, int port) throws IOException {
      NettyServerBuilder builder =
          NettyServerBuilder.forAddress(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), port))
              .maxInboundMessageSize(Integer.MAX_VALUE)
              .permitKeepAliveTime(1, TimeUnit.MILLISECONDS)
              .permitKeepAliveWithoutCalls(true);
      for (BindableService service : services) {
        builder.addService(ServerInterceptors.intercept(service, GrpcContextHeaderAccessorProvider.interceptor()));
      }
      return builder.build().start();
    }
  }

  private static DefaultJobBundleFactory newWorkers(JobInfo job) {
    PipelineOptions options = PipelineOptionsTranslation.fromProto(job.pipelineOptions());
    Map<String, EnvironmentFactory.Provider> providers = new HashMap<>();
    providers.put(
        BeamUrns.getUrn(RunnerApi.StandardEnvironments.Environments.EXTERNAL),
        onLoopback(new ExternalEnvironmentFactory.Provider()));
    providers.put(
        BeamUrns.getUrn(RunnerApi.StandardEnvironments.Environments.PROCESS),
        onLoopback(new ProcessEnvironmentFactory.Provider(options)));
    return DefaultJobBundleFactory.create(job, providers);
  }

  private static EnvironmentFactory.Provider onLoopback(EnvironmentFactory.Provider provider) {
    return new EnvironmentFactory.Provider() {
      @Override
      public EnvironmentFactory createEnvironmentFactory(
          GrpcFnServer<FnApiControlClientPoolService> control,
          GrpcFnServer<GrpcLoggingService> logging,
          GrpcFnServer<ArtifactRetrievalService> artifacts,
          GrpcFnServer<StaticGrpcProvisionService> provision,
          ControlClientPool clients,
          IdGenerator ids) {
        return provider.createEnvironmentFactory(control, logging, artifacts, provision, clients, ids);
      }

      @Override
      public ServerFactory getServerFactory() {
        return new LoopbackServers();
      }
    };
  }

  // -------------------------------------------------------------------------------------------------------------------
  // Jobs

  private static final class Invoker extends JobInvoker {
    Invoker() {
      super("job-%d");
    }

    @Override
    protected JobInvocation invokeWithExecutor(
        RunnerApi.Pipeline pipeline, Struct given, String token, ListeningExecutorService executor) {
      EngineOptions options = PipelineOptionsTranslation.fromProto(given).as(EngineOptions.class);
      JobInfo job =
          JobInfo.create(
              "job-" + UUID.randomUUID(), options.getJobName(), token, PipelineOptionsTranslation.toProto(options));
      return new JobInvocation(job, executor, pipeline, new Engine(options));
    }
  }

  private static final class Done implements PortablePipelineResult {
    private final MetricsContainerStepMap metrics;

    Done(MetricsContainerStepMap metrics) {
      this.metrics = metrics;
    }

    @Override
    public State getState() {
      return State.DONE;
    }

    @Override
    public State cancel() {
      return State.DONE;
    }

    @Override
    public State waitUntilFinish(Duration duration) {
      return State.DONE;
    }

    @Override
    public State waitUntilFinish() {
      return State.DONE;
    }

    @Override
    public MetricResults metrics() {
      return MetricsContainerStepMap.asAttemptedOnlyMetricResults(metrics);
    }

    /** As Flink's and Spark's: no metric has a committed value. */
    @Override
    public JobApi.MetricResults portableMetrics() {
      return JobApi.MetricResults.newBuilder().addAllAttempted(metrics.getMonitoringInfos()).build();
    }
  }

  // -------------------------------------------------------------------------------------------------------------------
  // The engine

  @SuppressWarnings({"unchecked", "rawtypes"})
  private static final class Engine implements PortablePipelineRunner {
    private static final Set<String> KNOWN =
        Set.of(
            PTransformTranslation.IMPULSE_TRANSFORM_URN,
            PTransformTranslation.FLATTEN_TRANSFORM_URN,
            PTransformTranslation.GROUP_BY_KEY_TRANSFORM_URN,
            PTransformTranslation.RESHUFFLE_URN,
            ExecutableStage.URN);

    private final EngineOptions options;
    private final Random random = new Random();
    private final MetricsContainerStepMap metrics = new MetricsContainerStepMap();
    private final Map<String, List<WindowedValue<?>>> collections = new HashMap<>();
    private final List<DefaultJobBundleFactory> workers = new ArrayList<>(); // the last ones are in use

    Engine(EngineOptions options) {
      this.options = options;
    }

    @Override
    public PortablePipelineResult run(RunnerApi.Pipeline given, JobInfo job) throws Exception {
      // What the runners for Flink and Spark do with a pipeline before they translate it.
      RunnerApi.Pipeline expanded =
          ProtoOverrides.updateTransform(
              PTransformTranslation.PAR_DO_TRANSFORM_URN, given, SplittableParDoExpander.createSizedReplacement());
      RunnerApi.Pipeline fused =
          GreedyPipelineFuser.fuse(TrivialNativeTransformExpander.forKnownUrns(expanded, KNOWN)).toPipeline();
      QueryablePipeline graph =
          QueryablePipeline.forTransforms(fused.getRootTransformIdsList(), fused.getComponents());
      ExecutorService threads =
          Executors.newFixedThreadPool(options.getEngineBundles() * options.getEngineCopies());
      workers.add(newWorkers(job));
      try {
        for (PTransformNode node : graph.getTopologicallyOrderedTransforms()) {
          RunnerApi.PTransform transform = node.getTransform();
          switch (transform.getSpec().getUrn()) {
            case PTransformTranslation.IMPULSE_TRANSFORM_URN:
              put(transform, List.of(WindowedValue.valueInGlobalWindow(new byte[0])));
              break;
            case PTransformTranslation.GROUP_BY_KEY_TRANSFORM_URN:
              String input = transform.getInputsMap().values().iterator().next();
              put(transform, grouped(collections.get(input), keyCoder(input, fused)));
              break;
            case ExecutableStage.URN:
              runStage(transform, job, threads);
              break;
            case PTransformTranslation.FLATTEN_TRANSFORM_URN:
            case PTransformTranslation.RESHUFFLE_URN:
              List<WindowedValue<?>> all = new ArrayList<>();
              for (String each : transform.getInputsMap().values()) all.addAll(collections.get(each));
              put(transform, all);
              break;
            default:
              throw new IllegalArgumentException("cannot run " + transform.getUniqueName());
          }
        }
        return new Done(metrics);
      } finally {
        threads.shutdownNow();
        closeWorkers();
      }
    }

    private void put(RunnerApi.PTransform transform, List<? extends WindowedValue<?>> values) {
      List<WindowedValue<?>> shuffled = new ArrayList<>(values);
      Collections.shuffle(shuffled, random);
      for (String output : transform.getOutputsMap().values()) collections.put(output, shuffled);
    }

    private static Coder keyCoder(String collection, RunnerApi.Pipeline pipeline) {
      Coder coder = PipelineTranslatorUtils.instantiateCoder(collection, pipeline.getComponents());
      return ((KvCoder) ((WindowedValue.WindowedValueCoder) coder).getValueCoder()).getKeyCoder();
    }

    /** One element for each key, told by its encoded bytes; the values of a key have no order. */
    private List<WindowedValue<?>> grouped(List<WindowedValue<?>> values, Coder keys) throws IOException {
      Map<ByteBuffer, KV<Object, List<Object>>> groups = new LinkedHashMap<>();
      for (WindowedValue<?> value : values) {
        KV<Object, Object> pair = (KV<Object, Object>) value.getValue();
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        keys.encode(pair.getKey(), bytes);
        groups
            .computeIfAbsent(ByteBuffer.wrap(bytes.toByteArray()), key -> KV.of(pair.getKey(), new ArrayList<>()))
            .getValue()
            .add(pair.getValue());
      }
      List<WindowedValue<?>> found = new ArrayList<>();
      for (KV<Object, List<Object>> group : groups.values()) found.add(WindowedValue.valueInGlobalWindow(group));
      return found;
    }

    private void runStage(RunnerApi.PTransform transform, JobInfo job, ExecutorService threads) throws Exception {
      RunnerApi.ExecutableStagePayload payload =
          RunnerApi.ExecutableStagePayload.parseFrom(transform.getSpec().getPayload());
      ExecutableStage stage = ExecutableStage.fromPayload(payload);
      List<WindowedValue<?>> input = collections.get(payload.getInput());
      List<List<WindowedValue<?>>> bundles = new ArrayList<>();
      for (int part = 0; part < options.getEngineBundles(); part++) bundles.add(new ArrayList<>());
      for (int place = 0; place < input.size(); place++) bundles.get(place % bundles.size()).add(input.get(place));
      List<List<Future<Map<String, List<WindowedValue<?>>>>>> running = new ArrayList<>();
      for (List<WindowedValue<?>> bundle : bundles) {
        List<Future<Map<String, List<WindowedValue<?>>>>> copies = new ArrayList<>();
        for (int copy = 0; copy < options.getEngineCopies(); copy++) {
          copies.add(threads.submit(() -> runWithRetries(transform.getUniqueName(), stage, bundle, job)));
        }
        running.add(copies);
      }
      for (String output : transform.getOutputsMap().values()) collections.put(output, new ArrayList<>());
      for (List<Future<Map<String, List<WindowedValue<?>>>>> copies : running) {
        List<Map<String, List<WindowedValue<?>>>> made = new ArrayList<>();
        for (Future<Map<String, List<WindowedValue<?>>>> copy : copies) {
          try {
            made.add(copy.get());
          } catch (ExecutionException failure) {
            throw failure.getCause() instanceof Exception ? (Exception) failure.getCause() : failure;
          }
        }
        made.get(random.nextInt(made.size())).forEach((output, values) -> collections.get(output).addAll(values));
      }
      for (String output : transform.getOutputsMap().values()) Collections.shuffle(collections.get(output), random);
    }

    private Map<String, List<WindowedValue<?>>> runWithRetries(
        String step, ExecutableStage stage, List<WindowedValue<?>> bundle, JobInfo job) throws Exception {
      for (int left = options.getNumberOfExecutionRetries(); ; left--) {
        DefaultJobBundleFactory used = currentWorkers();
        try {
          return runBundle(step, used.forStage(stage), stage, bundle);
        } catch (Exception failure) {
          if (left <= 0 || Thread.currentThread().isInterrupted()) throw failure;
          replaceWorkers(used, job); // as another machine of a cluster would start its own
        }
      }
    }

    private Map<String, List<WindowedValue<?>>> runBundle(
        String step, StageBundleFactory factory, ExecutableStage stage, List<WindowedValue<?>> values)
        throws Exception {
      Map<String, List<WindowedValue<?>>> made = new ConcurrentHashMap<>();
      OutputReceiverFactory outputs =
          new OutputReceiverFactory() {
            @Override
            public <T> FnDataReceiver<T> create(String collection) {
              List<WindowedValue<?>> found =
                  made.computeIfAbsent(collection, name -> Collections.synchronizedList(new ArrayList<>()));
              return value -> found.add((WindowedValue<?>) value);
            }
          };
      BundleProgressHandler progress =
          new BundleProgressHandler() {
            @Override
            public void onProgress(BeamFnApi.ProcessBundleProgressResponse progress) {}

            @Override
            public void onCompleted(BeamFnApi.ProcessBundleResponse response) {
              synchronized (metrics) {
                metrics.getContainer(step).update(response.getMonitoringInfosList());
              }
            }
          };
      try (RemoteBundle bundle = factory.getBundle(outputs, sideInputs(stage), progress)) {
        FnDataReceiver receiver = bundle.getInputReceivers().values().iterator().next();
        for (WindowedValue<?> value : values) receiver.accept(value);
      }
      return made;
    }

    private StateRequestHandler sideInputs(ExecutableStage stage) throws IOException {
      return StateRequestHandlers.forSideInputHandlerFactory(
          ProcessBundleDescriptors.getSideInputs(stage),
          BatchSideInputHandlerFactory.forStage(
              stage,
              new BatchSideInputHandlerFactory.SideInputGetter() {
                @Override
                public <T> List<T> getSideInput(String collection) {
                  return (List<T>) collections.get(collection);
                }
              }));
    }

    private DefaultJobBundleFactory currentWorkers() {
      synchronized (workers) {
        return workers.get(workers.size() - 1);
      }
    }

    private void replaceWorkers(DefaultJobBundleFactory used, JobInfo job) {
      synchronized (workers) {
        if (currentWorkers() == used) workers.add(newWorkers(job));
      }
    }

    private void closeWorkers() {
      synchronized (workers) {
        for (DefaultJobBundleFactory each : workers) {
          try {
            each.close();
          } catch (Exception gone) { // a worker that is dead already
            System.err.println("workers: " + gone);
          }
        }
      }
    }
  }
}
